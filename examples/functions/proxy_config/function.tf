output "caddyfile" {
  value = provider::sandbox::proxy_config("caddy", {
    "pr-17.preview.example.org" = "127.0.0.1:20123"
    "pr-18.preview.example.org" = "http://127.0.0.1:20456"
  })
}
