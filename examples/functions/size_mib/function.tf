# 1536: units are binary, a number alone is MiB.
output "memory" {
  value = provider::sandbox::size_mib("1.5G")
}
