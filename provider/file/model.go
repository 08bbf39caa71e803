package file

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Model is a sandbox_file in configuration, plan and state.
type Model struct {
	ID               types.String   `tfsdk:"id"`
	ContainerID      types.String   `tfsdk:"container_id"`
	HostKey          types.String   `tfsdk:"host_key"`
	Path             types.String   `tfsdk:"path"`
	Content          types.String   `tfsdk:"content"`
	ContentWO        types.String   `tfsdk:"content_wo"`
	ContentWOVersion types.Int64    `tfsdk:"content_wo_version"`
	Source           types.String   `tfsdk:"source"`
	Owner            types.String   `tfsdk:"owner"`
	Mode             types.String   `tfsdk:"mode"`
	SHA256           types.String   `tfsdk:"sha256"`
	Size             types.Int64    `tfsdk:"size"`
	Timeouts         timeouts.Value `tfsdk:"timeouts"`
}

// secret tells whether the content is write-only. The version says it, as the content itself is in no plan or state.
func (m *Model) secret() bool { return !m.ContentWOVersion.IsNull() }

func (m *Model) thing() string {
	return fmt.Sprintf("file %s in container %s", m.Path.ValueString(), m.ContainerID.ValueString())
}

// fill writes what the guest says into the model. Create, Read, Update and Import all end here.
func (m *Model) fill(info sandbox.FileInfo) {
	m.ID = types.StringValue(fileID(m.ContainerID.ValueString(), m.Path.ValueString()))
	m.Size = types.Int64Value(info.Size)
	m.SHA256 = types.StringNull()
	if !m.secret() && info.SHA256 != "" {
		m.SHA256 = types.StringValue(info.SHA256)
	}
	if !ownerIs(m.Owner.ValueString(), info) {
		m.Owner = types.StringValue(info.Owner + ":" + info.Group)
	}
	if mode, err := parseMode(m.Mode.ValueString()); err != nil || mode != permissions(info.Mode) {
		m.Mode = types.StringValue(fmt.Sprintf("%04o", octal(permissions(info.Mode))))
	}
	m.ContentWO = types.StringNull()
}

// ownerIs tells whether an owner as a user writes it is the file's. A user alone says nothing about the group.
func ownerIs(owner string, info sandbox.FileInfo) bool {
	user, group, grouped := strings.Cut(owner, ":")
	if owner == "" || grouped && group == "" {
		return false
	}
	if user != "" && user != info.Owner && user != strconv.FormatUint(uint64(info.UID), 10) {
		return false
	}
	return !grouped || group == info.Group || group == strconv.FormatUint(uint64(info.GID), 10)
}

const permissionBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

func permissions(mode fs.FileMode) fs.FileMode { return mode & permissionBits }

// The bits above the permissions, in Unix's octal form and in Go's.
var specialBits = []struct {
	octal uint32
	mode  fs.FileMode
}{{0o4000, fs.ModeSetuid}, {0o2000, fs.ModeSetgid}, {0o1000, fs.ModeSticky}}

func parseMode(text string) (fs.FileMode, error) {
	bits, err := strconv.ParseUint(text, 8, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not an octal mode", text)
	}
	mode := fs.FileMode(bits) & fs.ModePerm
	for _, special := range specialBits {
		if uint32(bits)&special.octal != 0 {
			mode |= special.mode
		}
	}
	return mode, nil
}

func octal(mode fs.FileMode) uint32 {
	bits := uint32(mode.Perm())
	for _, special := range specialBits {
		if mode&special.mode != 0 {
			bits |= special.octal
		}
	}
	return bits
}

// fileID joins what the import id takes apart: "100012" and "/etc/motd" are "100012/etc/motd".
func fileID(containerID, path string) string { return containerID + path }

func parseFileID(id string) (containerID, path string, err error) {
	vmid, rest, found := strings.Cut(id, "/")
	_, _, idErr := sandbox.ParseContainerID(vmid)
	path = "/" + strings.TrimPrefix(rest, "/")
	if !found || idErr != nil || !absolutePath.MatchString(path) {
		return "", "", fmt.Errorf(`%q is not "vmid/path", for example 100012/etc/motd`, id)
	}
	return vmid, path, nil
}
