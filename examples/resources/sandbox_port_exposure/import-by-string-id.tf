import {
  to = sandbox_port_exposure.web
  id = "100007/8080"
}
