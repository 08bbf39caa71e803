resource "sandbox_container" "agent" {
  hostname = "agent-01"
  network  = { ipv4 = "auto" }
}

# Runs once, and again whenever one of the triggers changes.
resource "sandbox_exec" "clone" {
  container_id = sandbox_container.agent.id
  command      = ["git", "clone", "--depth", "1", "https://example.org/app.git", "/root/app"]

  triggers = {
    container = sandbox_container.agent.claim # a new container, a new run
  }
}

output "said" {
  value = sandbox_exec.clone.stdout
}
