resource "sandbox_container" "agent" {
  hostname = "agent-01"
  tags     = ["agents"]

  cores  = 2
  memory = 2048 # MiB
  swap   = 0
  disk   = 8 # GiB; can grow, never shrinks

  network = {
    ipv4 = "auto" # from the provider's address_range, by the container's id
  }

  authorized_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN4zzNTqjPPLgyfpNPJmGQRjLOhYeg4CFZRRNbUaPjIM dev@example.org"]
}

output "address" {
  value = sandbox_container.agent.ipv4_address
}
