# A sandbox per pull request. In CI: one state per pull request (a workspace or a state key with its number),
# `apply` on each push, `destroy` when it is closed.
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

variable "pull_request" {
  description = "Number of the pull request."
  type        = number
  default     = 42
}

variable "commit" {
  description = "Commit to test. Another one runs the tests again, in the same sandbox."
  type        = string
  default     = "0000000"
}

variable "memory" {
  description = "Memory, as people write it."
  type        = string
  default     = "1GiB"
}

resource "sandbox_container" "pr" {
  hostname    = "pr-${var.pull_request}"
  description = "Tests of pull request ${var.pull_request}."
  tags        = ["ci", "pr-${var.pull_request}"]

  cores  = 1
  memory = provider::sandbox::size_mib(var.memory)

  network = {
    ipv4 = "auto"
  }
}

resource "sandbox_file" "script" {
  container_id = sandbox_container.pr.id
  path         = "/root/ci.sh"
  content      = file("${path.module}/ci.sh")
  mode         = "0755"
}

resource "sandbox_exec" "tests" {
  container_id = sandbox_container.pr.id
  command      = [sandbox_file.script.path, var.commit]

  triggers = {
    commit = var.commit
    script = sandbox_file.script.sha256
  }
}

output "result" {
  description = "What the tests said."
  value       = sandbox_exec.tests.stdout
}
