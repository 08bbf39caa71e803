data "sandbox_port_exposures" "all" {}

# Exposures whose container is gone: to be removed, for their address may soon be another's.
output "orphans" {
  value = [for x in data.sandbox_port_exposures.all.exposures : "${x.node_name}: ${x.name}" if x.state == "orphaned"]
}
