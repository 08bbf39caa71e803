# There is one per cluster.
terraform import sandbox_datacenter_firewall.this datacenter
