# "before-upgrade-to-v2-0": what Proxmox VE takes for a snapshot's name.
output "name" {
  value = provider::sandbox::snapshot_name("before upgrade to v2.0")
}
