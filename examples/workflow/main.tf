# From a broken project to a mended one: the folder is copied into a sandbox, an agent works on it, tests decide, the agent
# is sent back with what they say, and the changes come back into the folder. Nothing of the agent's ever runs here.
# Where the server is comes from SANDBOX_* variables (`make lab` writes a set into .cache/lab.env).
#
# Without an agent's name a script plays its part, so that this runs anywhere:
#   terraform apply -var agent=claude-code -var 'secrets={ANTHROPIC_API_KEY="…"}'

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "agent" {
  description = "Name of an agent that the template has, such as claude-code; null for the script."
  type        = string
  default     = null
}

variable "secrets" {
  description = "The agent's keys, by the names of its variables. They are in no state and in no plan."
  type        = map(string)
  default     = null
  ephemeral   = true
}

resource "sandbox_container" "box" {
  hostname = "workflow"

  network = {
    ipv4 = "auto"
    # An agent needs its provider's servers; the guide "Network modes" has narrower ways.
    mode = "nat"
  }
}

resource "sandbox_agent_run" "fix" {
  container_id = sandbox_container.box.id
  name         = "fix"

  agent      = var.agent
  command    = var.agent == null ? file("${path.module}/agent.sh") : null
  prompt     = "The functions in calc.sh are wrong. Mend them, and write a summary of one line into build/summary.txt."
  secrets_wo = var.secrets

  source = {
    dir = "${path.module}/project"
  }

  test_command = "sh test.sh"
  max_repairs  = 3
  timeout      = "20m"

  # Made in ./project. For a folder in a repository, its changes must be committed before.
  sync_back = "apply"

  artifacts = [{
    path        = "build/summary.txt"
    destination = "${path.module}/out/summary.txt"
  }]

  # What the project was like, in the sandbox, to go back to:
  # restore_triggers = { n = 1 } does.
  checkpoint = {
    before  = true
    method  = "copy"
    restore = "before"

    restore_triggers = {}
  }

  # Without a change of these, the agent isn't run, and paid for, a second time.
  triggers = {
    task = "1"
  }

  lifecycle {
    postcondition {
      condition     = self.status == "succeeded"
      error_message = "The agent didn't get the tests to pass: ${self.output_tail}"
    }
    postcondition {
      condition     = jsondecode(self.report).diff.applied
      error_message = "The changes weren't applied; they are in ${jsondecode(self.report).diff.patch_file}."
    }
  }
}

output "attempts" {
  value = sandbox_agent_run.fix.attempts
}

output "changes" {
  value = sandbox_agent_run.fix.diff_stat
}

output "summary" {
  value = {
    for a in jsondecode(sandbox_agent_run.fix.report).artifacts : a.destination => a.sha256
  }
}
