# The group's name. Nothing is written when its rules are those of the configuration.
terraform import sandbox_firewall_group.agents agents
