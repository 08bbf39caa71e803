# The smallest template that is fit for use: hardened, audited, and proved by a clone. Where the server is comes from SANDBOX_* variables, as for
# the Terraform provider (`make lab` writes a set into .cache/lab.env).
#
#   packer init .
#   packer build -var 'provider_public_keys=["ssh-ed25519 AAAA…"]' .

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
  description = "Who may log in to clones: the public half of the provider's guest_ssh key (ssh-keygen -y -f KEY)."
}

variable "os_template" {
  type        = string
  default     = "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst"
  description = "A template file on the server: `pveam update && pveam download local debian-13-standard_13.1-2_amd64.tar.zst` fetches it."
}

variable "skip_packages" {
  type        = bool
  default     = false
  description = "Upgrade no packages. For a container that reaches no package mirror."
}

variable "minimum_grade" {
  type        = string
  default     = "A"
  description = "The build fails when the audit's grade is lower."
}

source "sandbox-lxc" "minimal" {
  template_name        = "minimal"
  template_description = "Debian, hardened. Built by examples/packer/minimal."
  tags                 = "template;minimal"

  os_template          = var.os_template
  provider_public_keys = var.provider_public_keys

  # A new id for each build; generations that nothing was cloned from go, but for the last three.
  keep = 3

  cores  = 1
  memory = 512
  rootfs {
    disk_size = 4 # GiB; the storage is SANDBOX_STORAGE, or storage_pool
  }

  # What the clone that proves the template is graded, with its configuration on the server.
  minimum_grade = var.minimum_grade
}

build {
  sources = ["source.sandbox-lxc.minimal"]

  # Accounts, SSH, first boot, limits, filter, units: idempotent, and for the profile "standard" (nesting).
  provisioner "sandbox-harden" {
    profile       = "standard"
    skip_packages = var.skip_packages
  }

  # What is in the template and of which version, as files beside this one.
  post-processor "sandbox-manifest" {}
}
