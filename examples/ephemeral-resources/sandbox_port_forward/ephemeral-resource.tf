# A database in a sandbox, for a provider of this run.
ephemeral "sandbox_port_forward" "database" {
  container_id = "100007"
  port         = 5432
}

# The reverse: the one service of ours that the sandbox may use, on its own loopback.
ephemeral "sandbox_port_forward" "model" {
  container_id = "100007"
  remote_forward = {
    port = 11434
    to   = "127.0.0.1:11434"
  }
}
