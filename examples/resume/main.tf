# A sandbox with a name and a workspace that is stopped, resumed, parked and forked.
# Where the server is comes from SANDBOX_* variables (`make lab` writes a set into .cache/lab.env).
#
#   terraform apply                                     # at work
#   terraform apply -var state=stopped                  # stopped: it keeps its disk and its address
#   terraform apply -var state=running                  # resumed
#   terraform apply -var state=parked                   # the sandbox is gone, its work is kept
#   terraform apply -var state=parked -var fork=try-b   # a copy of the work, with a sandbox of its own
#   terraform apply -var fork=try-b                     # both at work

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "name" {
  description = "Name of the sandbox and of its workspace."
  type        = string
  default     = "agent-a"
}

variable "state" {
  description = "running; stopped (resumes where it was); parked (no sandbox at all, the workspace is kept)."
  type        = string
  default     = "running"

  validation {
    condition     = contains(["running", "stopped", "parked"], var.state)
    error_message = "The state is running, stopped or parked."
  }
}

variable "fork" {
  description = "Name of a copy to make of the workspace. A workspace is forked while it is parked, and the fork stays when the original resumes. Empty for none."
  type        = string
  default     = ""
}

locals {
  # What every sandbox of this kind is like.
  profile = {
    cores  = 1
    memory = 512
    tags   = ["resume"]
  }
  sandboxes = merge(
    var.state == "parked" ? {} : { (var.name) = { workspace = sandbox_workspace.this.id, started = var.state == "running" } },
    { for fork in sandbox_workspace.fork : fork.name => { workspace = fork.id, started = true } },
  )
}

resource "sandbox_workspace" "this" {
  name = var.name
  size = 1
}

resource "sandbox_workspace" "fork" {
  count   = var.fork == "" ? 0 : 1
  name    = var.fork
  fork_of = sandbox_workspace.this.id
}

resource "sandbox_container" "this" {
  for_each = local.sandboxes
  hostname = each.key
  started  = each.value.started

  cores  = local.profile.cores
  memory = local.profile.memory
  tags   = local.profile.tags

  workspace = [{
    id   = each.value.workspace
    path = "/workspace"
  }]
}

output "sandboxes" {
  description = "Where they are."
  value       = { for name, box in sandbox_container.this : name => { id = box.id, status = box.status, ssh = try("${box.ssh.username}@${box.ssh.host}", null) } }
}
