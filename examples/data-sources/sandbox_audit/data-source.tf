resource "sandbox_container" "web" {
  hostname    = "web-1"
  template_id = 9000
  network     = { ipv4 = "auto", mode = "web" }
}

data "sandbox_audit" "web" {
  container_id = sandbox_container.web.id
  host_key     = sandbox_container.web.ssh.host_key
}

# A warning at every plan and apply while the grade is worse than A; a postcondition would be an error.
check "closed" {
  assert {
    condition     = data.sandbox_audit.web.score >= 90
    error_message = "${data.sandbox_audit.web.grade}: ${join("; ", [for f in data.sandbox_audit.web.findings : "${f.id} ${f.title}: ${f.remedy}" if f.status == "failed"])}"
  }
}

output "could_not_be_checked" {
  value = data.sandbox_audit.web.unknown
}
