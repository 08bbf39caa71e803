variable "anthropic_api_key" {
  type        = string
  description = "Key of the agent."
  ephemeral   = true
}

resource "sandbox_container" "work" {
  hostname = "work-1"
}

# An agent does a task, the tests decide, and it is run again at most twice when they fail.
resource "sandbox_agent_run" "fix" {
  container_id = sandbox_container.work.id
  agent        = "claude-code"
  prompt       = "Make the failing tests in this repository pass."
  working_dir  = "/home/agent/project"

  secrets_wo = {
    ANTHROPIC_API_KEY = var.anthropic_api_key
  }
  secrets_wo_version = 1

  test_command = "make test"
  max_repairs  = 2
  timeout      = "45m"
  log_file     = "fix.log"

  lifecycle {
    postcondition {
      condition     = self.status == "succeeded"
      error_message = "The agent didn't succeed: ${self.status}\n${self.output_tail}"
    }
  }
}
