# Files put into a sandbox, commands that run again when something changes, and a file read back.
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

resource "sandbox_container" "box" {
  hostname = "exec-and-files"

  network = {
    ipv4 = "auto"
  }
}

resource "sandbox_file" "greeting" {
  container_id = sandbox_container.box.id
  path         = "/root/greeting.txt"
  content      = "hello from terraform\n"
  owner        = "root:root"
  mode         = "0644"
}

# Runs when the file's content changes, and only then.
resource "sandbox_exec" "shout" {
  container_id = sandbox_container.box.id
  script       = "tr a-z A-Z < ${sandbox_file.greeting.path} > /root/copy.txt"

  triggers = {
    greeting = sandbox_file.greeting.sha256
  }
}

data "sandbox_file" "copy" {
  container_id = sandbox_exec.shout.container_id
  path         = "/root/copy.txt"

  depends_on = [sandbox_exec.shout]
}

data "sandbox_cluster" "this" {}

output "copy" {
  value = data.sandbox_file.copy.content
}

output "exit_code" {
  value = sandbox_exec.shout.exit_code
}

output "nodes" {
  value = keys(data.sandbox_cluster.this.nodes)
}
