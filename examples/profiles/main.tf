# One sandbox for each profile, with modifiers and a team's own settings on top. Profiles are plain values: what
# merge_profiles returns is given to the container attribute by attribute, and anything can be changed on the way.
# Where the server is comes from SANDBOX_* variables (`make lab` writes a set into .cache/lab.env).

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

variable "renew" {
  description = "Another text renews every lease, for example today's date."
  type        = string
  default     = "first"
}

locals {
  # What all of this team's sandboxes have in common: one place to change it.
  team = {
    tags    = ["team-blue"]
    network = { ipv4 = "auto" }
  }

  # The sandboxes: the profiles that each is made of, in order.
  wanted = {
    throwaway = ["yolo-ephemeral", "small"]           # gone after 3 hours
    project   = ["yolo-workspace"]                    # stopped after 8 hours, and kept
    desk      = ["interactive-dev", "small"]          # warned after 12 hours
    builder   = ["docker-agent"]                      # runs containers of its own
    reviewer  = ["yolo-ephemeral", "small", "secure"] # reaches nothing but what is allowed
  }

  sandboxes = {
    for name, profiles in local.wanted : name => provider::sandbox::merge_profiles(profiles, local.team)
  }
}

resource "sandbox_container" "this" {
  for_each = local.sandboxes

  hostname = each.key
  tags     = each.value.tags

  cores                  = each.value.cores
  cpu_units              = each.value.cpu_units
  memory                 = each.value.memory
  swap                   = each.value.swap
  nesting                = each.value.nesting
  snapshot_before_update = each.value.snapshot_before_update

  network = each.value.network
  lease   = merge(each.value.lease, { renew = var.renew })
}

output "ends" {
  description = "When each lease ends."
  value       = { for name, c in sandbox_container.this : name => c.expires_at }
}
