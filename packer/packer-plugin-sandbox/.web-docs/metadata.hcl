# What the integrations site shows of this plugin.
integration {
  name        = "Sandbox"
  description = "Builds, hardens, audits and proves container templates for agent sandboxes on Proxmox VE."
  identifier  = "packer/agentsandbox/sandbox"
  flags       = ["hcp-ready"]
  docs {
    process_docs    = true
    readme_location = "./README.md"
  }
  license {
    type = "MPL-2.0"
    url  = "https://github.com/agentsandbox/terraform-provider-sandbox/blob/main/LICENSE"
  }
  component {
    type = "builder"
    name = "LXC"
    slug = "lxc"
  }
  component {
    type = "provisioner"
    name = "Agents"
    slug = "agents"
  }
  component {
    type = "provisioner"
    name = "Harden"
    slug = "harden"
  }
  component {
    type = "provisioner"
    name = "Audit"
    slug = "audit"
  }
  component {
    type = "data-source"
    name = "Template"
    slug = "template"
  }
  component {
    type = "post-processor"
    name = "Manifest"
    slug = "manifest"
  }
  component {
    type = "post-processor"
    name = "Template file"
    slug = "vztmpl"
  }
}
