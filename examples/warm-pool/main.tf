# A pool of sandboxes that are ready, and a job that claims one: it has a sandbox in about the time of a login. The claim
# empties the pool by one, so the next apply makes another (see expect.json).
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

variable "pool" {
  description = "Name of the pool, and of the Proxmox pool that is made for it."
  type        = string
  default     = "agents-warm"
}

variable "size" {
  description = "How many sandboxes are kept ready."
  type        = number
  default     = 3
}

resource "sandbox_pool" "warm" {
  name    = var.pool
  comment = "Sandboxes that are ready for the next agent. Made by examples/warm-pool."
  size    = var.size

  member = {
    cores  = 1
    memory = provider::sandbox::size_mib("512M")
    swap   = 0
    # The firewall is in force before a member counts as ready; a claim that asks for the same mode has nothing to wait for.
    network = { ipv4 = "auto", mode = "nat" }
  }

  # Claimed members count: whatever jobs do, there are never more than these.
  limits = {
    members = 8
    memory  = provider::sandbox::size_mib("8G")
  }

  # What a new template or another setting of the members does: one after the other, never fewer ready than size - 1.
  update = {
    max_unavailable = 1
    max_surge       = 1
  }
}

resource "sandbox_container" "job" {
  hostname           = "job-17"
  claim_from_pool_id = sandbox_pool.warm.id
  description        = "A job's sandbox, claimed from the pool ${sandbox_pool.warm.name}."
  tags               = ["job"]

  memory  = provider::sandbox::size_mib("768M") # larger than the pool's members: changed in place
  network = { ipv4 = "auto", mode = "nat" }

  lease = {
    ttl = "2h" # a job that is forgotten ends by itself
  }
}

output "address" {
  description = "Address of the job's sandbox."
  value       = sandbox_container.job.ipv4_address
}

output "claimed_in_ms" {
  description = "How long the claim took, in milliseconds."
  value       = sandbox_container.job.timings.total
}
