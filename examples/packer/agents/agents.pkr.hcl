# A template with coding agents: Claude Code, Codex, OpenCode, Gemini, Pi and Aider, each pinned and checked, on top of a hardened Debian.
# Node.js and uv come from where you say, with a checksum. Mirrors for npm and PyPI can be named.
#
#   packer init . && packer build -var-file=mine.pkrvars.hcl .

packer {
  required_plugins {
    sandbox = {
      source  = "github.com/agentsandbox/sandbox"
      version = ">= 0.1.0"
    }
  }
}

variable "provider_public_keys" {
  type        = list(string)
  description = "Who may log in to clones: the public half of the provider's guest_ssh key."
}

variable "os_template" {
  type        = string
  default     = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
  description = "A template file on the server."
}

variable "agents" {
  type        = map(string)
  description = "Agents to install: version by name. An empty version is the plugin's own pin, which was tried with it."
  default = {
    claude-code = ""
    codex       = ""
    opencode    = ""
    gemini-cli  = ""
    pi          = ""
    aider       = ""
  }
}

variable "node_version" {
  type        = string
  default     = "22.23.3"
  description = "Node.js: 22.19 is the least that all of these agents run on; Debian 12 and 13 ship older ones."
}

variable "node_url" {
  type        = string
  default     = "https://nodejs.org/dist/v{version}/node-v{version}-linux-{arch}.tar.xz"
  description = "Where its archive is; {version} and {arch} are replaced."
}

variable "node_file" {
  type        = string
  default     = ""
  description = "The archive on this machine instead, for a server that doesn't reach the publisher."
}

variable "node_sha256" {
  type        = string
  description = "The archive's SHA-256, from the publisher's SHASUMS256.txt."
}

variable "uv_version" {
  type        = string
  default     = "0.9.13"
  description = "uv, which brings a Python that Aider runs on: Debian 13 ships 3.13, and Aider needs 3.12 at most."
}

variable "uv_url" {
  type        = string
  default     = "https://github.com/astral-sh/uv/releases/download/{version}/uv-x86_64-unknown-linux-gnu.tar.gz"
  description = "Where its archive is."
}

variable "uv_file" {
  type        = string
  default     = ""
  description = "The archive on this machine instead."
}

variable "uv_sha256" {
  type        = string
  description = "The archive's SHA-256."
}

variable "npm_registry" {
  type        = string
  default     = ""
  description = "An npm mirror; empty is npm's own."
}

variable "pypi_index" {
  type        = string
  default     = ""
  description = "A PyPI mirror; empty is PyPI's own."
}

variable "skip_packages" {
  type        = bool
  default     = false
  description = "Leave packages alone, for a container that reaches no package mirror."
}

source "sandbox-lxc" "agents" {
  template_name        = "agents"
  template_description = "Debian, hardened, with coding agents. Built by examples/packer/agents."
  tags                 = "template;agents"

  os_template          = var.os_template
  provider_public_keys = var.provider_public_keys
  keep                 = 3

  cores  = 2
  memory = 2048
  rootfs {
    disk_size = 16 # GiB: the agents take 55 to 434 MB each
  }

  minimum_grade = "A"
}

build {
  sources = ["source.sandbox-lxc.agents"]

  # First the system, so that the agents' account is there.
  provisioner "sandbox-harden" {
    profile       = "standard" # nesting: the agents' own sandboxes need user namespaces
    skip_packages = var.skip_packages
  }

  # Some of these are proprietary: they are installed from their publishers on your server, and not for passing on.
  provisioner "sandbox-agents" {
    agents       = var.agents
    npm_registry = var.npm_registry
    pypi_index   = var.pypi_index

    node {
      version = var.node_version
      url     = var.node_file == "" ? var.node_url : ""
      file    = var.node_file
      sha256  = var.node_sha256
    }
    uv {
      version = var.uv_version
      url     = var.uv_file == "" ? var.uv_url : ""
      file    = var.uv_file
      sha256  = var.uv_sha256
    }
  }

  # Before the seal, with the report for code scanning.
  provisioner "sandbox-audit" {
    minimum_grade = "A"
    sarif_file    = "agents.sarif"
  }

  post-processor "sandbox-manifest" {}
}
