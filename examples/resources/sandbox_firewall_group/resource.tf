# What a team's agents may reach: DNS at the site's resolver, three services, and one database inside.
resource "sandbox_firewall_group" "agents" {
  name      = "agents" # at most 18 characters
  mode      = "allowlist"
  resolvers = ["10.10.0.1"]

  allow = [
    { to = "140.82.112.0/20", ports = "22,443" },                     # GitHub, as it publishes its networks
    { to = "api.example.com", ports = "443", resolve = "apply" },  # pinned at apply; drift when it moves
    { to = "10.20.0.7/32", ports = "5432" },                          # inside a closed range: opened by name
  ]
}

resource "sandbox_container" "agent" {
  hostname = "agent-01"
  cores    = 2
  network = {
    mode           = "allowlist"
    firewall_group = sandbox_firewall_group.agents.name
  }
}

# Rules of one's own, built on those of a mode.
resource "sandbox_firewall_group" "mail" {
  name = "mailers"
  rule = concat(
    provider::sandbox::egress_rules("web", ["10.10.0.1"], ["10.10.0.1"], [{ to = "203.0.113.25", ports = "25,587" }]),
    [{ direction = "out", action = "REJECT", log = "info", comment = "what the mode would drop unseen" }],
  )
}
