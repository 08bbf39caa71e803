variable "keys" {
  type        = map(string)
  description = "Keys of the agents, by the name of the variable."
  ephemeral   = true
}

resource "sandbox_container" "member" {
  for_each = toset(["claude", "codex"])

  hostname = "member-${each.key}"
}

resource "sandbox_snapshot" "start" {
  for_each = sandbox_container.member

  container_id = each.value.id
  name         = "start"
}

# Two agents do the same task from the same files; who makes more tests pass wins the round.
resource "sandbox_mission" "contest" {
  strategy      = "arena"
  task          = "Make the tests in this folder pass."
  rounds        = 3
  snapshot_name = "start"
  score_command = "make test 2>&1 | grep -c '^ok'"

  members = {
    claude = {
      container_id = sandbox_container.member["claude"].id
      agent        = "claude-code"
      working_dir  = "/home/agent/project"
    }
    codex = {
      container_id = sandbox_container.member["codex"].id
      agent        = "codex"
      working_dir  = "/home/agent/project"
    }
  }

  secrets_wo         = var.keys
  secrets_wo_version = 1

  depends_on = [sandbox_snapshot.start]
}

output "winner" {
  value = sandbox_mission.contest.winner
}
