import {
  to = sandbox_snapshot.clean
  identity = {
    container_id = "100007"
    name         = "clean"
  }
}
