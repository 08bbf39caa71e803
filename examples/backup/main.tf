# A sandbox is backed up when its work has reached a state worth keeping, and a second one is made from the backup.
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

variable "backup_storage" {
  description = "A storage with the content type backup."
  type        = string
  default     = "local"
}

resource "sandbox_container" "work" {
  hostname = "backup-work"

  network = {
    ipv4 = "auto"
  }
}

resource "sandbox_file" "result" {
  container_id = sandbox_container.work.id
  path         = "/root/result.txt"
  content      = "a day's work\n"
}

# A new result makes a new backup; the two newest stay.
resource "sandbox_backup" "result" {
  container_id = sandbox_container.work.id
  storage      = var.backup_storage
  notes        = "result ${sandbox_file.result.sha256}"
  keep_last    = 2

  triggers = {
    result = sandbox_file.result.sha256
  }
}

resource "sandbox_container" "again" {
  hostname     = "backup-again"
  restore_from = sandbox_backup.result.volid

  # A later backup is no reason to make this one anew.
  on_template_change = "keep"

  network = {
    ipv4 = "auto"
  }
}

data "sandbox_file" "again" {
  container_id = sandbox_container.again.id
  path         = "/root/result.txt"
}

output "backup" {
  value = "${sandbox_backup.result.volid}, ${sandbox_backup.result.size} bytes, of ${sandbox_backup.result.created_at}"
}

output "restored" {
  value = data.sandbox_file.again.content
}
