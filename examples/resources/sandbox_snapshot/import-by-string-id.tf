import {
  to = sandbox_snapshot.clean
  id = "100007/clean"
}
