# One security group for a whole fleet: what its members may reach is said once, changed once, and counts for all of them at the same time.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "allowed_cidrs" {
  description = "Networks that agents may reach over TLS, such as those that a forge publishes. Thousands are fine: they stand in an IP set, and a change writes only what differs."
  type        = list(string)
  default     = ["140.82.112.0/20", "192.30.252.0/22", "2606:50c0::/32"]
}

resource "sandbox_firewall_group" "agents" {
  name      = "example-agents"
  mode      = "allowlist"
  resolvers = ["9.9.9.9", "2620:fe::fe"]
  allow     = [{ cidrs = var.allowed_cidrs, ports = "443" }]
}

resource "sandbox_container" "agent" {
  count    = 2
  hostname = "agent-${count.index}"
  cores    = 1

  network = {
    ipv4           = "auto"
    mode           = "allowlist"
    firewall_group = sandbox_firewall_group.agents.name
  }
}

output "rules" {
  description = "What counts for every member, in its order."
  value       = [for r in sandbox_firewall_group.agents.rules : join(" ", compact([r.direction, r.action, r.macro, r.protocol, r.from, r.to, r.ports]))]
}
