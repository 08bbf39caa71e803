import {
  to = sandbox_file.settings
  identity = {
    container_id = "100007"
    path         = "/root/.config/agent/settings.json"
  }
}
