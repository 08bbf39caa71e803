# By id, or by node and id. The container must carry the provider's mark; see the provider's attribute adopt for one that doesn't.
terraform import sandbox_container.agent 100007
terraform import sandbox_container.agent pve1/100007
