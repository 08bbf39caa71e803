# "http://pve1.example.org:20123"
output "preview" {
  value = provider::sandbox::exposure_url("http", "pve1.example.org", 20123)
}
