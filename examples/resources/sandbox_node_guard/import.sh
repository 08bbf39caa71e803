# Node and bridge, or node and network.
terraform import sandbox_node_guard.vmbr1 pve1/vmbr1
terraform import sandbox_node_guard.shared pve1/10.99.0.0/16
