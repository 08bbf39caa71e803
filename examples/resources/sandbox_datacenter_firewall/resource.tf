# Once per cluster, best in a configuration of its own: sandboxes with a managed network.mode are refused at plan while the switch is off.
resource "sandbox_datacenter_firewall" "this" {
  accept_guests = [104] # somebody's virtual machine, whose own firewall was set up and may begin to count
}
