# Sandboxes on vmbr1 reach the node's DHCP server, its DNS server on 10.77.0.1 and its package proxy, and nothing else of it.
resource "sandbox_node_guard" "vmbr1" {
  node_name = "pve1"
  bridge    = "vmbr1"
  resolvers = ["10.77.0.1"]
  allow     = [{ ports = "3142" }]
}

# Taking the bridge from the guard makes the guard first.
resource "sandbox_container" "agent" {
  hostname = "agent-01"
  cores    = 2
  network  = { bridge = sandbox_node_guard.vmbr1.bridge }
}
