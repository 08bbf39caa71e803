terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source  = "agentsandbox/sandbox"
      version = "~> 0.1"
    }
  }
}

# Every attribute also has a variable, SANDBOX_API_TOKEN for api_token: keep secrets there.
provider "sandbox" {
  endpoint    = "https://pve.example.org:8006"
  fingerprint = "AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89:AB:CD:EF:01:23:45:67:89"
  owner       = "team-blue" # only containers with this mark are ever changed or destroyed

  vmid_range    = { first = 100000, last = 100999 }
  address_range = { cidr = "10.77.0.0/16", first = "10.77.1.0", gateway = "10.77.0.1" }

  template_id = 9000
  storage     = "local-btrfs"
  bridge      = "vmbr1"

  guest_ssh = {
    private_key_file = "~/.ssh/sandbox"
    proxy_jump = {
      host     = "pve.example.org"
      username = "jump"
      host_key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIN4zzNTqjPPLgyfpNPJmGQRjLOhYeg4CFZRRNbUaPjIM"
    }
  }
}
