# Credentials come from TAILSCALE_OAUTH_CLIENT_ID and TAILSCALE_OAUTH_CLIENT_SECRET.
ephemeral "sandbox_tailscale_key" "agent" {
  tags = ["tag:sandbox"]
}

resource "sandbox_container" "agent" {
  hostname = "agent-1"

  tailscale = {
    auth_key_wo         = ephemeral.sandbox_tailscale_key.agent.key
    auth_key_wo_version = 1
    tags                = ["tag:sandbox"]
  }
}
