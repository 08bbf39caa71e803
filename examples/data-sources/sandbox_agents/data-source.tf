data "sandbox_agents" "mine" {
  names = ["claude-code", "codex"]
}

# A sandbox whose network reaches what these agents talk to, and nothing else.
resource "sandbox_firewall_group" "agents" {
  name = "agents"
  mode = "allowlist"
  allow = [for domain in data.sandbox_agents.mine.egress_domains : {
    to    = domain
    ports = "443"
  }]
}

output "keys" {
  value = { for name, agent in data.sandbox_agents.mine.agents : name => agent.keys_any_of }
}
