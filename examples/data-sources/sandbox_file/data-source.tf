data "sandbox_file" "release" {
  container_id = "100007"
  path         = "/etc/os-release"
}

output "release" {
  value = data.sandbox_file.release.content
}
