# What a nightly run applies, with a state of its own: sandboxes of the owner whose lease is over, and what a pipeline
# that was killed has left half made. Its first apply only looks; from the second on, each apply destroys what its plan
# has named.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "dry_run" {
  description = "Only say what would be destroyed."
  type        = bool
  default     = false
}

resource "sandbox_reaper" "nightly" {
  dry_run     = var.dry_run
  max_destroy = 20
}

data "sandbox_containers" "all" {
  depends_on = [sandbox_reaper.nightly]
}

output "reaped" {
  description = "What the last apply that destroyed anything has destroyed."
  value       = [for c in sandbox_reaper.nightly.reaped : "${c.hostname}: ${c.reason} since ${c.since}"]
}

output "kept" {
  description = "What is over and kept, and why."
  value       = [for c in sandbox_reaper.nightly.kept : "${c.hostname}: ${c.kept}"]
}

output "running" {
  description = "What is left, and until when."
  value       = { for c in data.sandbox_containers.all.containers : c.hostname => c.expires_at }
}
