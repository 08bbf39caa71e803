# Twelve sandboxes, one per coding agent: clones of one template, running and reachable over SSH when the apply ends.
# Where the server is comes from SANDBOX_* variables (`make lab` writes a set into .cache/lab.env).

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "size" {
  description = "How many sandboxes."
  type        = number
  default     = 12
}

resource "sandbox_container" "agent" {
  for_each = toset([for n in range(var.size) : format("agent-%02d", n + 1)])

  hostname    = each.key
  description = "Sandbox of a coding agent. Made by examples/fleet."
  tags        = ["fleet"]

  cores  = 1
  memory = provider::sandbox::size_mib("512M")
  swap   = 0

  network = {
    ipv4 = "auto" # from the provider's address range: no DHCP, nothing to wait for
  }
}

output "addresses" {
  description = "Address of each sandbox."
  value       = { for name, agent in sandbox_container.agent : name => agent.ipv4_address }
}

output "ids" {
  description = "Container id of each sandbox."
  value       = { for name, agent in sandbox_container.agent : name => agent.vmid }
}
