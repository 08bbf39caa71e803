# Whatever development server an agent starts, it can be seen.
resource "sandbox_port_exposure" "development" {
  for_each = provider::sandbox::development_ports()

  container_id = "100007"
  port         = each.value
  protocol     = "http"
}
