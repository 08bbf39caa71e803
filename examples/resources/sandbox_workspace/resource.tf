# One workspace per repository. It outlives the sandboxes that have it.
resource "sandbox_workspace" "repo" {
  name = provider::sandbox::repo_slug("https://github.com/acme/web-app.git")
  size = 20 # GiB; grows only

  lifecycle {
    prevent_destroy = true # its content would be gone
  }
}

resource "sandbox_container" "agent" {
  hostname            = "agent-01"
  restart_when_needed = true # so that a workspace that is taken out goes back at once

  workspace = [{
    id   = sandbox_workspace.repo.id
    path = "/workspace"
    wait = "2m"
  }]
}

# A copy of what is in it now, for an experiment. The source must be detached.
resource "sandbox_workspace" "experiment" {
  name    = "web-app-experiment"
  fork_of = sandbox_workspace.repo.id
}
