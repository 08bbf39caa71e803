variable "reset" {
  type        = string
  default     = ""
  description = "Any new value puts the sandbox back to its clean state: terraform apply -var reset=$(date +%s)"
}

resource "sandbox_container" "agent" {
  hostname = "agent-1"
}

resource "sandbox_snapshot" "clean" {
  container_id = sandbox_container.agent.id
  name         = "clean"
}

# Nothing is rolled back before there is something to undo.
resource "sandbox_rollback" "clean" {
  count = var.reset == "" ? 0 : 1

  container_id  = sandbox_container.agent.id
  snapshot_name = sandbox_snapshot.clean.name

  triggers = {
    reset = var.reset
  }
}
