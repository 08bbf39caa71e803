# Two cores of "yolo-ephemeral" become eight, its lease of 3 hours becomes one of 6.
output "agent" {
  value = provider::sandbox::merge_profiles(["yolo-ephemeral", "large"], { lease = { ttl = "6h" } })
}
