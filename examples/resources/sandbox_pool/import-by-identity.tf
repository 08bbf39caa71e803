import {
  to = sandbox_pool.warm
  identity = {
    name = "agents-warm"
  }
}
