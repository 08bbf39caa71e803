# A run in a sandbox: a task, a key that exists in memory only, tests that decide, and a report.
# The agent here is a few lines of shell, so that it runs anywhere; with agent = "claude-code" in place of command, and a
# template that has it, it is a real one.
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

variable "api_key" {
  type        = string
  description = "Key that the agent needs. It reaches the run in memory and stands in no state."
  ephemeral   = true
  default     = "not-a-real-key"
}

resource "sandbox_container" "work" {
  hostname = "agent-run"

  network = {
    ipv4 = "auto"
  }
}

resource "sandbox_agent_run" "greet" {
  container_id = sandbox_container.work.id
  prompt       = "Write a greeting of two lines into greeting.txt."

  # Plays an agent: it has the prompt as its input and the key in its environment, and does half of the work each time.
  command = <<-EOT
    set -e
    [ -n "$API_KEY" ]
    echo "attempt $SBX_ATTEMPT, my task: $(head -n 1)"
    echo "line $SBX_ATTEMPT" >> greeting.txt
  EOT

  secrets_wo = {
    API_KEY = var.api_key
  }
  secrets_wo_version = 1

  # The tests fail after the first attempt; the second one repairs it.
  test_command = "[ \"$(wc -l < greeting.txt)\" -eq 2 ]"
  max_repairs  = 2
  timeout      = "5m"

  lifecycle {
    postcondition {
      condition     = self.status == "succeeded"
      error_message = "The agent didn't succeed: ${self.status}\n${self.output_tail}"
    }
  }
}

output "attempts" {
  value = sandbox_agent_run.greet.attempts
}

output "output" {
  value = sandbox_agent_run.greet.output_tail
}

output "report" {
  value = jsondecode(sandbox_agent_run.greet.report)
}
