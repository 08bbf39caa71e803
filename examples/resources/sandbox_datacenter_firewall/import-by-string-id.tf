import {
  to = sandbox_datacenter_firewall.this
  id = "datacenter"
}
