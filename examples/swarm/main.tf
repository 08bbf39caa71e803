# A swarm: an architect, a developer and a reviewer work on one task in turn, each told what the one before said; then
# two critics debate the result and a judge closes.
# The members here are a line of shell each; with agent = "…" in place of command they are real ones.
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

resource "sandbox_container" "member" {
  for_each = toset(["first", "second"])

  hostname = "swarm-${each.key}"

  network = {
    ipv4 = "auto"
  }
}

locals {
  first  = sandbox_container.member["first"].id
  second = sandbox_container.member["second"].id
}

resource "sandbox_mission" "build" {
  name     = "build"
  strategy = "pipeline"
  task     = "Write a program that greets."

  members = {
    ada   = { role = "architect", container_id = local.first, command = "echo 'A function greet(name), and a test for it.'" }
    dan   = { role = "developer", container_id = local.second, command = "grep -o 'function greet(name)'; echo 'I built it.'" }
    robin = { role = "reviewer", container_id = local.second, command = "grep -c 'I built it.'; echo 'It greets.'" }
  }
}

resource "sandbox_mission" "debate" {
  name     = "debate"
  strategy = "debate"
  task     = "Is this good enough?\n\n${sandbox_mission.build.answer}"
  rounds   = 2
  judge    = "judge"

  members = {
    optimist  = { container_id = local.first, command = "echo 'Yes, it greets.'" }
    pessimist = { container_id = local.second, command = "echo 'It has no tests.'" }
    judge     = { container_id = local.first, command = "grep -c 'The answer of'; echo 'Good enough, with one more test.'" }
  }
}

output "verdict" {
  value = sandbox_mission.debate.answer
}
