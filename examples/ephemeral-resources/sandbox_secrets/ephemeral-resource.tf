ephemeral "sandbox_secrets" "agent" {
  environment = ["ANTHROPIC_API_KEY"]
  sops        = { path = "secrets.enc.yaml" }
}

# The same without values: it says when a secret was changed.
data "sandbox_secrets" "agent" {
  environment = ["ANTHROPIC_API_KEY"]
  sops        = { path = "secrets.enc.yaml" }
}

resource "sandbox_file" "netrc" {
  container_id       = "100007"
  path               = "/run/netrc"
  content_wo         = "machine git.example.org login agent password ${ephemeral.sandbox_secrets.agent.values["GIT_TOKEN"]}\n"
  content_wo_version = data.sandbox_secrets.agent.version
}
