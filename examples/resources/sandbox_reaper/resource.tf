# Every night: destroys the sandboxes of this owner whose lease is over, and what a run that was killed has left half made.
resource "sandbox_reaper" "nightly" {
  dry_run     = false
  max_destroy = 20
}

# With the claims that states hold, sandboxes that no state knows are found too; a dry run first.
resource "sandbox_reaper" "orphans" {
  keep_claims = [sandbox_container.agent.claim]
  grace       = "48h"
}

resource "sandbox_container" "agent" {
  hostname = "agent"

  lease = {
    ttl       = "8h"
    renew     = "2026-12-01" # another text renews it
    idle_stop = "1h"
    on_expiry = "stop"
  }
}
