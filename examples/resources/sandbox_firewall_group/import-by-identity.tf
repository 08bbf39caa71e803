import {
  to = sandbox_firewall_group.agents
  identity = {
    name = "agents"
  }
}
