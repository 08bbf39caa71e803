import {
  to = sandbox_container.agent
  identity = {
    vmid = 100007
  }
}
