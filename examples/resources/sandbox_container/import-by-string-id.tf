import {
  to = sandbox_container.agent
  id = "100007"
}
