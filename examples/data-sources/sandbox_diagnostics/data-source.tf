data "sandbox_diagnostics" "broken" {
  container_id  = "100007"
  journal_lines = 500
}

output "bundle" {
  value = data.sandbox_diagnostics.broken.bundle
}
