resource "sandbox_container" "agent" {
  hostname = "agent-01"
  network  = { ipv4 = "auto" }
}

resource "sandbox_file" "settings" {
  container_id = sandbox_container.agent.id
  path         = "/root/.config/agent/settings.json"
  content      = jsonencode({ model = "large", telemetry = false })
  owner        = "root:root"
  mode         = "0640"
}
