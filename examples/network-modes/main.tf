# The four network modes side by side, and a target that proves them: the SSH server of a sandbox of its own, which every mode forbids because it
# has a private address. Before a sandbox counts as ready, the provider reaches that server itself, then tries it from inside the sandbox; one
# that got through would have its link taken down and be stopped, and the apply would fail.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

locals {
  modes = {
    off       = "nothing out, not even DNS"
    web       = "DNS, and TCP 80 and 443 to public addresses"
    nat       = "everything to public addresses"
    allowlist = "DNS, and what allow names"
  }
  resolver = "9.9.9.9"
}

# The canary. It is unmanaged, which each plan warns about: nothing may keep it from answering.
resource "sandbox_container" "canary" {
  hostname = "canary"
  network  = { ipv4 = "auto", mode = "unmanaged" }
}

resource "sandbox_container" "mode" {
  for_each    = local.modes
  hostname    = "mode-${each.key}"
  description = "Mode ${each.key}: ${each.value}."

  network = {
    ipv4     = "auto"
    mode     = each.key
    canaries = ["${sandbox_container.canary.ipv4_address}:22"]
    allow    = each.key == "allowlist" ? [{ to = "140.82.112.0/20", ports = "443", protocol = "tcp" }] : null
  }
  dns = { servers = [local.resolver] }

  # A canary that doesn't answer proves nothing: then the proof is "readback" only.
  lifecycle {
    postcondition {
      condition     = contains(["probed", "simulated"], self.posture.proof)
      error_message = "The mode was not tried from inside."
    }
  }
}

output "proof" {
  description = "How each mode was proved: \"probed\" from inside, \"simulated\" in a lab without packets."
  value       = { for name, box in sandbox_container.mode : name => box.posture.proof }
}

output "rules" {
  description = "The rules as the server has them."
  value       = { for name, box in sandbox_container.mode : name => [for line in box.posture.firewall : line if startswith(line, "rule ")] }
}
