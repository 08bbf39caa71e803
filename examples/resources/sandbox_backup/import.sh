# By its volume id, or by node and volume id where nodes have different storages of one name.
terraform import sandbox_backup.before local:backup/vzdump-lxc-100012-2026_12_01-05_07_33.tar.zst
terraform import sandbox_backup.before pve1/local:backup/vzdump-lxc-100012-2026_12_01-05_07_33.tar.zst
