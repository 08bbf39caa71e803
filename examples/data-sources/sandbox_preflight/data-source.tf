data "sandbox_preflight" "this" {
  features = ["containers", "snapshots", "network"]
}

check "server" {
  assert {
    condition     = data.sandbox_preflight.this.ok
    error_message = join("\n", [for f in data.sandbox_preflight.this.findings : f.summary if f.severity == "error"])
  }
}

output "commands" {
  description = "For root on a node of the cluster"
  value       = join("\n", data.sandbox_preflight.this.commands)
}
