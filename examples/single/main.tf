# One sandbox, with what people usually set. Where the server is comes from SANDBOX_* variables (`make lab` writes a set into .cache/lab.env).

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "authorized_keys" {
  description = "Public keys that may log in, besides the provider's own."
  type        = list(string)
  default     = []
}

resource "sandbox_container" "this" {
  hostname    = "scratch"
  description = "For trying things out; nobody minds if it is gone tomorrow."
  tags        = ["scratch"]

  cores     = 2
  cpu_limit = 1.5 # at most one and a half cores' worth of time
  memory    = 1024
  swap      = 0

  network = {
    ipv4       = "auto"
    rate_limit = 50 # MB/s
  }

  dns = {
    servers = ["9.9.9.9"]
    domain  = "sandbox.internal"
  }

  authorized_keys = var.authorized_keys

  timeouts = {
    create = "5m"
  }
}

output "login" {
  description = "How to get in, from where the provider can reach it."
  value       = "ssh ${sandbox_container.this.ssh.username}@${sandbox_container.this.ssh.host}"
}

output "host_key" {
  description = "What its SSH server showed at first contact, for your known_hosts."
  value       = sandbox_container.this.ssh.host_key
}
