package base

import (
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Descriptions of the two attributes by which everything inside a container names it.
const (
	ContainerIDDescription = "Container, by its `id` (the vmid). It must run, and carry this provider's ownership marker."
	HostKeyDescription     = "Host key that the container must show, normally `ssh.host_key` of its resource. Default: the key that it shows at the first contact of a run is believed."
)

// ContainerIDValidators refuse what is no vmid.
func ContainerIDValidators() []validator.String {
	return []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^[1-9][0-9]{2,8}$`), "must be the id (vmid) of a container, such as sandbox_container.example.id")}
}

// Inside is how the domain reaches the inside of a container that is only known by its id: the marker on the server
// must say that it is the provider's, with whatever claim.
func Inside(containerID, hostKey types.String) (sandbox.Prior, error) {
	_, vmid, err := sandbox.ParseContainerID(containerID.ValueString())
	if err != nil {
		return sandbox.Prior{}, err
	}
	return sandbox.Prior{Ref: sandbox.Ref{VMID: vmid}, SSHHostKey: hostKey.ValueString()}, nil
}
