resource "sandbox_container" "agent" {
  hostname = "agent-1"
}

resource "sandbox_snapshot" "clean" {
  container_id = sandbox_container.agent.id
  name         = "clean"
  description  = "As it was handed to the agent."
}

# A name that Proxmox VE takes, made of a text that it wouldn't.
resource "sandbox_snapshot" "release" {
  container_id = sandbox_container.agent.id
  name         = provider::sandbox::snapshot_name("pre-8.4-upgrade")

  depends_on = [sandbox_snapshot.clean]
}
