# A sandbox for code that nobody has read: limits on everything that can be used up, nothing reachable but one registry, no nesting unless asked for, and a plan
# that fails when somebody has loosened it behind Terraform's back.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "canaries" {
  description = "Listeners in your own network, such as [\"192.168.1.1:443\"]: the sandbox is proved not to reach them before it counts as ready."
  type        = list(string)
  default     = null
}

# Without nesting a sandbox can make no namespaces and mount no /proc of its own: less of the kernel is in reach. Debian 13 and others with systemd 256
# or later start services in namespaces of their own, some of which then fail (226/NAMESPACE): with such a template, say true, or take
# the sandboxing out of its services when it is built.
variable "nesting" {
  description = "Whether the sandbox may make namespaces, as systemd from version 256 on and agents' own sandboxes want to."
  type        = bool
  default     = false
}

resource "sandbox_container" "untrusted" {
  hostname = "untrusted"

  cores     = 1
  cpu_limit = 1
  cpu_units = 50 # others come first
  memory    = 512
  swap      = 0
  nesting   = var.nesting

  network = {
    ipv4       = "auto"
    ipv6       = "none"
    rate_limit = 10 # MB/s

    mode     = "allowlist"
    allow    = [{ to = "151.101.0.0/16", ports = "443", protocol = "tcp" }] # files.pythonhosted.org, by its CDN's range
    canaries = var.canaries
  }
  dns = { servers = ["9.9.9.9"] }

  # An apply repairs what the API can repair and replaces the sandbox where it can't; this refuses to hand it out before that.
  lifecycle {
    postcondition {
      condition     = self.posture.unprivileged && length(self.posture.mounts) == 0 && length(self.posture.devices) == 0 && length(self.posture.raw) == 0
      error_message = "The sandbox isn't as isolated as it was made: see its posture."
    }
    postcondition {
      condition     = contains(self.posture.firewall, "enable=1") && contains(self.posture.firewall, "policy_out=DROP") && contains(self.posture.firewall, "net0.firewall=1")
      error_message = "The sandbox's firewall is not in force."
    }
  }
}

output "posture" {
  value = sandbox_container.untrusted.posture
}
