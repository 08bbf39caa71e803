data "sandbox_snapshots" "agent" {
  container_id = "100007"
}

output "newest" {
  value = try(data.sandbox_snapshots.agent.names[length(data.sandbox_snapshots.agent.names) - 1], null)
}
