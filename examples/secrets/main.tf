# Secrets for a sandbox that stand in no state, no plan and on no disk of it: read from a file, handed to a run in memory.
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

# In earnest: an age or sops file, or environment = ["ANTHROPIC_API_KEY"].
variable "secrets_file" {
  type    = string
  default = "secrets.env.example"
}

ephemeral "sandbox_secrets" "agent" {
  file = { path = "${path.module}/${var.secrets_file}" }
}

# The same without values: its version says when a secret has changed.
data "sandbox_secrets" "agent" {
  file = { path = "${path.module}/${var.secrets_file}" }
}

resource "sandbox_container" "box" {
  hostname = "secrets"

  network = {
    ipv4 = "auto"
  }
}

# A file in memory: /run is gone when the sandbox stops.
resource "sandbox_file" "netrc" {
  container_id       = sandbox_container.box.id
  path               = "/run/netrc"
  content_wo         = "machine git.example.org login agent password ${ephemeral.sandbox_secrets.agent.values["GIT_TOKEN"]}\n"
  content_wo_version = data.sandbox_secrets.agent.version
}

# Variables of one run, from memory to its environment; its output is without them.
resource "sandbox_agent_run" "task" {
  container_id       = sandbox_container.box.id
  command            = "test -n \"$API_KEY\" && echo \"called with $API_KEY\""
  secrets_wo         = { API_KEY = ephemeral.sandbox_secrets.agent.values["API_KEY"] }
  secrets_wo_version = data.sandbox_secrets.agent.version
  timeout            = "2m"

  lifecycle {
    postcondition {
      condition     = self.status == "succeeded" && strcontains(self.output_tail, "called with [redacted]")
      error_message = "The run ended as ${self.status}: ${self.output_tail}"
    }
  }
}

output "fingerprints" {
  value = data.sandbox_secrets.agent.fingerprints
}

output "said" {
  value = sandbox_agent_run.task.output_tail
}
