import {
  to = sandbox_pool.warm
  id = "agents-warm"
}
