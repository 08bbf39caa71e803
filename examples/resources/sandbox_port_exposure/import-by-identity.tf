import {
  to = sandbox_port_exposure.web
  identity = {
    container_id = "100007"
    port         = 8080
  }
}
