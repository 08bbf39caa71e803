# The container's id and the snapshot's name; the node may stand before them.
terraform import sandbox_snapshot.clean 100007/clean
