# The ports of development servers in a sandbox, exposed on the loopback of its node, with the configuration of a proxy there.
# Where the server is comes from SANDBOX_* variables (`make lab` writes a set into .cache/lab.env), SANDBOX_NODE_SSH_* among them.

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

resource "sandbox_container" "dev" {
  hostname = "exposure"

  network = {
    ipv4 = "auto"
  }
}

# node 3000, vite 5173, django 8000, web 8080, jupyter 8888: nothing needs to listen there yet.
resource "sandbox_port_exposure" "dev" {
  for_each = provider::sandbox::development_ports()

  container_id = sandbox_container.dev.id
  host_key     = sandbox_container.dev.ssh.host_key
  port         = each.value
  protocol     = "http"
}

data "sandbox_port_exposures" "dev" {
  container_id = sandbox_container.dev.id

  depends_on = [sandbox_port_exposure.dev]
}

output "urls" {
  value = { for name, exposure in sandbox_port_exposure.dev : name => exposure.url }
}

output "units" {
  value = [for exposure in data.sandbox_port_exposures.dev.exposures : exposure.name]
}

# For the proxy on the node: one name for each server.
output "caddyfile" {
  value = provider::sandbox::proxy_config("caddy", {
    for name, exposure in sandbox_port_exposure.dev : "${name}.dev.example.org" => exposure.url
  })
}
