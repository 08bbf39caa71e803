data "sandbox_cluster" "this" {}

output "online" {
  value = [for node in data.sandbox_cluster.this.nodes : node.name if node.online]
}
