import {
  to = sandbox_node_guard.vmbr1
  identity = {
    node_name = "pve1"
    guards    = "vmbr1"
  }
}
