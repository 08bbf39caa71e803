# Work that outlives its sandbox: a volume is handed from Monday's sandbox to Tuesday's, and nothing on it is lost.
# Where the server is comes from SANDBOX_* variables (`make lab` writes a set into .cache/lab.env).
#
#   terraform apply                        # monday works
#   terraform apply -var sandbox=tuesday   # monday is destroyed, tuesday goes on where it stopped

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "sandbox" {
  description = "Name of the sandbox that works now. Another name replaces it."
  type        = string
  default     = "monday"
}

variable "repository" {
  description = "What is worked on. Each repository has a workspace of its own."
  type        = string
  default     = "https://git.example.org/acme/web-app.git"
}

resource "sandbox_workspace" "repo" {
  name = provider::sandbox::repo_slug(var.repository)
  size = 1 # GiB; grows only
}

resource "sandbox_container" "box" {
  for_each = toset([var.sandbox])
  hostname = each.key

  network = {
    ipv4 = "auto"
  }

  workspace = [{
    id   = sandbox_workspace.repo.id
    path = "/workspace"
    wait = "2m" # for the one before to let go
  }]
}

# The account "agent", where the template has it, writes a line into a log on the workspace, and reads what is there.
resource "sandbox_exec" "work" {
  for_each     = sandbox_container.box
  container_id = each.value.id
  host_key     = each.value.ssh.host_key
  script       = "as=; id -u agent >/dev/null 2>&1 && as='runuser -u agent --'; $as sh -c 'hostname >> /workspace/log; cat /workspace/log'"
}

output "log" {
  description = "Who has worked on it, the first one first."
  value       = [for run in sandbox_exec.work : split("\n", trimspace(run.stdout))][0]
}
