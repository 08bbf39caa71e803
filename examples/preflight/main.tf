# Is the server ready, and may the token do what it has to? And a bundle of one sandbox, for when something is wrong.
# The provider takes its configuration from SANDBOX_… variables: `make lab` writes them to a file.

terraform {
  required_providers {
    sandbox = { source = "agentsandbox/sandbox" }
  }
}

provider "sandbox" {}

data "sandbox_preflight" "this" {
  features = ["containers", "snapshots", "backups"]
}

check "ready" {
  assert {
    condition     = data.sandbox_preflight.this.ok
    error_message = join("\n", [for f in data.sandbox_preflight.this.findings : "${f.summary}: ${f.remedy}" if f.severity == "error"])
  }
}

resource "sandbox_container" "this" {
  hostname = "checked"
  network  = { ipv4 = "auto" }
}

data "sandbox_diagnostics" "this" {
  container_id = sandbox_container.this.id
  host_key     = sandbox_container.this.ssh.host_key
}

output "missing_privileges" {
  value = [for p in data.sandbox_preflight.this.missing : "${p.privilege} on ${p.path}"]
}

output "storages_with_snapshots" {
  value = distinct(flatten([for node in data.sandbox_preflight.this.nodes : [for name, s in node.storages : name if s.snapshots == true]]))
}

output "filtered" {
  description = "Whether all three switches of the container's firewall are on"
  value       = alltrue([data.sandbox_diagnostics.this.firewall.datacenter == true, data.sandbox_diagnostics.this.firewall.guest == true, data.sandbox_diagnostics.this.firewall.interface])
}
