import {
  to = sandbox_workspace.repo
  identity = {
    vmid = 100007
  }
}
