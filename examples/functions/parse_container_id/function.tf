# Takes "100007", "pve1/100007" and "lxc/100007".
output "node" {
  value = provider::sandbox::parse_container_id("pve1/100007").node_name
}
