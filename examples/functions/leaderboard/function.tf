# Which agent did best, over the reports of some runs and missions.
variable "reports" {
  type        = list(string)
  description = "Attributes report of sandbox_agent_run and sandbox_mission."
  default     = []
}

output "leaderboard" {
  value = provider::sandbox::leaderboard(var.reports)
}
