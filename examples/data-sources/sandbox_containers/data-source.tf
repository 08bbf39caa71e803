data "sandbox_containers" "mine" {
  tag = "agents"
}

output "running" {
  value = [for c in data.sandbox_containers.mine.containers : c.hostname if c.status == "running"]
}

# What nobody has renewed.
data "sandbox_containers" "over" {
  expired = true
}
