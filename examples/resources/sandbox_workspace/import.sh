# The holder's vmid, or the workspace's name.
terraform import sandbox_workspace.repo 100007
terraform import sandbox_workspace.repo acme-web-app-de5c45c1
