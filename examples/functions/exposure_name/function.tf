# "sbx-100007-8080"
output "unit" {
  value = provider::sandbox::exposure_name("100007", 8080)
}
