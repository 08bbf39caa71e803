# The rules of the mode "web", with one network more, to look at or to put into a sandbox_firewall_group.
output "rules" {
  value = provider::sandbox::egress_rules("web", ["10.10.0.1/32"], ["10.10.0.1"], [{ to = "203.0.113.0/24", ports = "8443" }])
}
