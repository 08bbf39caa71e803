import {
  to = sandbox_datacenter_firewall.this
  identity = {
    id = "datacenter"
  }
}
