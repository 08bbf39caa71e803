import {
  to = sandbox_firewall_group.agents
  id = "agents"
}
