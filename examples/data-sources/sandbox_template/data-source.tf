data "sandbox_template" "agents" {
  name   = "agents"
  newest = true

  lifecycle {
    postcondition {
      condition     = contains(["A+", "A"], self.grade) && contains(keys(self.agents), "codex")
      error_message = "Template ${self.id} has grade ${coalesce(self.grade, "none")} and no Codex."
    }
  }
}

resource "sandbox_container" "worker" {
  hostname           = "worker-1"
  template_id        = data.sandbox_template.agents.id
  on_template_change = "replace" # each rebuild of the template makes it anew
}
