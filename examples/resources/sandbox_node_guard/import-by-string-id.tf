import {
  to = sandbox_node_guard.vmbr1
  id = "pve1/vmbr1"
}
