import {
  to = sandbox_backup.before
  id = "local:backup/vzdump-lxc-100012-2026_12_01-05_07_33.tar.zst"
}
