variable "commit" {
  type        = string
  default     = ""
  description = "What the sandbox works on."
}

resource "sandbox_container" "agent" {
  hostname = "agent-1"
}

resource "sandbox_backup" "before" {
  container_id = sandbox_container.agent.id
  storage      = "local"
  notes        = "before the migration"
  keep_last    = 3

  # A new value makes a new backup; the three newest stay.
  triggers = {
    commit = var.commit
  }
}

# A second sandbox from it, beside the first.
resource "sandbox_container" "again" {
  hostname     = "again"
  restore_from = sandbox_backup.before.volid
}
