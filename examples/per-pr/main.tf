# A sandbox per pull request: made by the first push, renewed by each further one, destroyed when it is closed, and gone
# by itself when everybody forgets. One state per pull request; ci/ has ready workflows for GitHub Actions, GitLab CI and
# Forgejo, janitor/ is what their nightly run applies.
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
  description = "Commit to test. Another one renews the lease and runs the tests again, in the same sandbox."
  type        = string
  default     = "0000000"
}

variable "run" {
  description = "Number of the pipeline's run. A second run of the same commit renews the lease and tests again too."
  type        = number
  default     = 1
}

variable "memory" {
  description = "Memory, as people write it."
  type        = string
  default     = "1GiB"
}

# Ephemeral: it stands in no plan and in no state. So it has to be given again when a saved plan is applied.
variable "token" {
  description = "A token that the tests need, for example for a package registry."
  type        = string
  default     = "none"
  ephemeral   = true
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

  # It is born with this end. Nobody has to remember it: its own timer stops it, and the janitor destroys it.
  lease = {
    ttl       = "8h"
    renew     = "${var.commit}/${var.run}"
    on_expiry = "stop"
  }
}

resource "sandbox_file" "tests" {
  container_id = sandbox_container.pr.id
  path         = "/root/tests.sh"
  content      = file("${path.module}/tests.sh")
  mode         = "0755"
}

# In memory only; another run writes it again.
resource "sandbox_file" "token" {
  container_id       = sandbox_container.pr.id
  path               = "/run/ci/token"
  content_wo         = var.token
  content_wo_version = var.run
  mode               = "0600"
}

resource "sandbox_exec" "tests" {
  container_id = sandbox_container.pr.id
  command      = [sandbox_file.tests.path, var.commit]

  triggers = {
    commit = var.commit
    run    = var.run
    script = sandbox_file.tests.sha256
  }

  depends_on = [sandbox_file.token]
}

output "result" {
  description = "What the tests said."
  value       = sandbox_exec.tests.stdout
}

output "expires_at" {
  description = "When the sandbox goes by itself."
  value       = sandbox_container.pr.expires_at
}
