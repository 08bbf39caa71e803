resource "sandbox_container" "web" {
  hostname = "web"

  network = { ipv4 = "auto" }
}

# On the node's loopback, for those who can log in to the node and for a proxy there.
resource "sandbox_port_exposure" "web" {
  container_id = sandbox_container.web.id
  port         = 8080
  protocol     = "http"
}

# In the node's tailnet, under the node's name there.
resource "sandbox_port_exposure" "preview" {
  container_id = sandbox_container.web.id
  port         = 5173
  protocol     = "http"
  via          = "tailscale"
}

# On one address of the node.
resource "sandbox_port_exposure" "office" {
  container_id = sandbox_container.web.id
  port         = 8000
  protocol     = "http"
  via          = "address"
  address      = "192.0.2.10"
  host_port    = 18000
}
