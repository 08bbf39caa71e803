# Two agents do the same task, from the same snapshot, in two rounds; a command scores them, and a leaderboard sums up.
# The agents here are a line of shell each; with agent = "…" in place of command they are real ones.
# Where the server is comes from SANDBOX_* variables (`make lab` writes a set into .cache/lab.env).

terraform {
  required_version = ">= 1.11"
  required_providers {
    sandbox = {
      source = "agentsandbox/sandbox"
    }
  }
}

provider "sandbox" {}

locals {
  agents = {
    careful = "printf 'one\\ntwo\\nthree\\n' > answer.txt"
    hasty   = "echo one > answer.txt"
  }
}

resource "sandbox_container" "member" {
  for_each = local.agents

  hostname = "arena-${each.key}"

  network = {
    ipv4 = "auto"
  }
}

resource "sandbox_snapshot" "start" {
  for_each = sandbox_container.member

  container_id = each.value.id
  name         = "start"
}

resource "sandbox_mission" "contest" {
  strategy      = "arena"
  task          = "Count from one to three in answer.txt, one number per line."
  rounds        = 2
  snapshot_name = "start"
  score_command = "wc -l < answer.txt"

  members = {
    for name, command in local.agents : name => {
      container_id = sandbox_container.member[name].id
      command      = command
    }
  }

  depends_on = [sandbox_snapshot.start]
}

output "winner" {
  value = sandbox_mission.contest.winner
}

output "leaderboard" {
  value = provider::sandbox::leaderboard([sandbox_mission.contest.report])
}
