ephemeral "sandbox_ssh_key" "deploy" {
  comment = "deploy"
}

resource "sandbox_container" "example" {
  hostname                   = "example"
  authorized_keys_wo         = [ephemeral.sandbox_ssh_key.deploy.public_key]
  authorized_keys_wo_version = 1
}
