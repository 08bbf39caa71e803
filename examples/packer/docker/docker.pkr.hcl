# A template in which Docker runs. It needs the feature keyctl, which only root@pam may set, with its password: no token may. Docker in a container
# shares the node's kernel with more of its surface open than an ordinary sandbox; Proxmox VE's own advice is to run Docker in a virtual machine.
# Use it for code that you trust more than the rest.
#
#   PROXMOX_USERNAME=root@pam PROXMOX_PASSWORD=… packer build .

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

variable "install_docker" {
  type        = bool
  default     = true
  description = "Install Debian's docker.io. Turn it off where no package mirror is reached, and bring Docker by another provisioner."
}

variable "skip_packages" {
  type        = bool
  default     = false
  description = "Upgrade no packages."
}

variable "minimum_grade" {
  type        = string
  default     = "B"
  description = "Docker costs points: the audit says which."
}

source "sandbox-lxc" "docker" {
  template_name        = "docker"
  template_description = "Debian, hardened for Docker inside. Built by examples/packer/docker."
  tags                 = "template;docker"

  os_template          = var.os_template
  provider_public_keys = var.provider_public_keys
  keep                 = 2

  cores  = 2
  memory = 2048
  rootfs {
    disk_size = 16
  }

  features {
    nesting = true
    keyctl  = true
  }

  minimum_grade = var.minimum_grade
}

build {
  sources = ["source.sandbox-lxc.docker"]

  provisioner "sandbox-harden" {
    profile       = "docker"
    skip_packages = var.skip_packages
  }

  provisioner "shell" {
    inline = var.install_docker ? [
      "apt-get update -q",
      "DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends docker.io",
    ] : ["true"]
  }

  post-processor "sandbox-manifest" {}
}
