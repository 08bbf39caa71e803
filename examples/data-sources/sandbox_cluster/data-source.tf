data "sandbox_cluster" "this" {}

output "online" {
  value = [for name, node in data.sandbox_cluster.this.nodes : name if node.online]
}
