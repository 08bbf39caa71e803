# A sandbox with a state to come back to. An agent makes a mess; a rollback undoes it, and proves it.
# `terraform apply -var reset=2` (any other value) rolls back again.
# Where the server is comes from SANDBOX_* variables (`make lab` prints a set).

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "reset" {
  type        = string
  default     = "1"
  description = "Another value rolls the sandbox back again."
}

resource "sandbox_container" "box" {
  hostname = "time-machine"
  cores    = 1
  memory   = 256

  network = {
    ipv4 = "auto"
  }
}

# What the agent is to start from.
resource "sandbox_exec" "setup" {
  container_id = sandbox_container.box.id
  host_key     = sandbox_container.box.ssh.host_key
  script       = "mkdir -p /srv/app && echo 'it works' > /srv/app/state"
}

resource "sandbox_snapshot" "clean" {
  container_id = sandbox_exec.setup.container_id
  name         = provider::sandbox::snapshot_name("clean v1.0")
  description  = "As it was handed to the agent."
}

# The agent's mistake.
resource "sandbox_exec" "mistake" {
  container_id = sandbox_container.box.id
  host_key     = sandbox_container.box.ssh.host_key
  script       = "rm -rf /srv/app && echo 'oops' > /root/mess"

  depends_on = [sandbox_snapshot.clean]
}

# The way back: the disk is the snapshot's again, the sandbox runs with the settings that it has here.
resource "sandbox_rollback" "undo" {
  container_id  = sandbox_container.box.id
  host_key      = sandbox_container.box.ssh.host_key
  snapshot_name = sandbox_snapshot.clean.name

  triggers = {
    reset = var.reset
  }

  depends_on = [sandbox_exec.mistake]
}

# The proof: the work is back, and the mess is gone. It runs after each rollback, and fails the apply when it isn't so.
resource "sandbox_exec" "proof" {
  container_id = sandbox_container.box.id
  host_key     = sandbox_container.box.ssh.host_key
  script       = "set -e; test ! -e /root/mess; cat /srv/app/state"

  triggers = {
    rollback = sandbox_rollback.undo.id
  }
}

data "sandbox_snapshots" "box" {
  container_id = sandbox_container.box.id

  depends_on = [sandbox_rollback.undo]
}

output "proof" {
  value = trimspace(sandbox_exec.proof.stdout)
}

output "seconds" {
  value       = sandbox_rollback.undo.timings.total / 1000
  description = "What the mistake cost."
}

output "snapshots" {
  value = data.sandbox_snapshots.box.names
}
