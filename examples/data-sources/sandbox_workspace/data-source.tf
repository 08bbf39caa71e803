data "sandbox_workspace" "repo" {
  name = provider::sandbox::repo_slug("https://github.com/acme/web-app.git")
}

output "held_by" {
  value = data.sandbox_workspace.repo.container_id # null while it is detached
}

# What is wrong with it, and what to do.
output "problems" {
  value = [for p in data.sandbox_workspace.repo.problems : "${p.summary} ${p.remedy}"]
}

check "workspace" {
  assert {
    condition     = data.sandbox_workspace.repo.healthy
    error_message = "The workspace needs a look."
  }
}
