import {
  to = sandbox_workspace.repo
  id = "acme-web-app-de5c45c1"
}
