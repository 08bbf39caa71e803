import {
  to = sandbox_backup.before
  identity = {
    volid     = "local:backup/vzdump-lxc-100012-2026_12_01-05_07_33.tar.zst"
    node_name = "pve1"
  }
}
