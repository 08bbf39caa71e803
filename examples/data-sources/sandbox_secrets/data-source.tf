data "sandbox_secrets" "agent" {
  age = {
    path          = "secrets.env.age"
    identity_file = "~/.config/age/key.txt"
  }
  only = ["ANTHROPIC_API_KEY", "GIT_TOKEN"]
}

output "secrets" {
  value = data.sandbox_secrets.agent.fingerprints
}
