# Five sandboxes are kept ready; jobs claim them.
resource "sandbox_pool" "warm" {
  name = "agents-warm"
  size = 5

  member = {
    template_id = 9000
    cores       = 2
    memory      = 2048 # MiB
    network     = { mode = "allowlist", allow = [{ to = "203.0.113.0/24", ports = "443" }] }
  }

  limits = {
    members = 20    # claimed ones included
    memory  = 40960 # MiB
  }

  placement = "spread"
  update    = { max_unavailable = 1, max_surge = 2 }
}

resource "sandbox_container" "job" {
  hostname           = "job-17"
  claim_from_pool_id = sandbox_pool.warm.id
  network            = { mode = "allowlist", allow = [{ to = "203.0.113.0/24", ports = "443" }] }

  # What to do when all are claimed: make one, at the speed of a clone.
  on_empty    = "clone"
  template_id = 9000
}

output "ready" {
  value = sandbox_pool.warm.ready
}
