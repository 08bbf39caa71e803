package sandbox

import (
	"fmt"
	"path"
	"strings"
)

// TemplateSpec says what template is to be built.
type TemplateSpec struct {
	// Name is the template's name (its hostname), the same for all of its generations: a DNS name.
	Name string
	// BuildName is its hostname while it is built; empty means Name.
	BuildName string
	// Description is the user's part of the description.
	Description string
	Tags        []string
	// VMID is the wanted id; 0 takes the lowest free one.
	VMID int
	// Node builds it; empty means the node of a clone's source, or the one with the most free memory that has the storages.
	Node string
	// PoolID is the Proxmox pool of the template and of the clone that proves it.
	PoolID string
	Source TemplateSource
	// Storage of the root disk; not for a linked clone.
	Storage string
	// DiskGiB is the root disk's size; 0 means the source's, or DefaultTemplateDiskGiB for a file.
	DiskGiB int
	// Privileged makes a privileged container, whose root is the node's.
	Privileged bool
	// Config are further settings by the API's keys ("cores", "net0", "features", "mp0"), as its text.
	Config map[string]string
	// AuthorizedKeys let the builder in while it is built; for a source that is a file or image.
	AuthorizedKeys []string
	// Replace removes templates of the same name (or the one that has VMID) that carry our marker and that nothing uses.
	Replace bool
	// Keep is how many generations stay when the build is done, the new one included; 0 keeps all.
	Keep int
}

// DefaultTemplateDiskGiB is the root disk's size of a template that is made from a file.
const DefaultTemplateDiskGiB = 8

// TemplateSource is what a template is made of: exactly one of File, URL, Image, CloneID and CloneName.
type TemplateSource struct {
	// File is a template file's volume id.
	File string
	// URL is fetched by the node into FileStorage, and must have the checksum ("sha256:…").
	URL, Checksum string
	// Image is an OCI reference that the node pulls into FileStorage (Proxmox VE 9.1 and later).
	Image string
	// FileStorage keeps what is fetched; empty means the first of the node's storages that takes template files.
	FileStorage string
	// CloneID and CloneName are a container or template on the server. Full copies the disk of a template, too.
	CloneID   int
	CloneName string
	Full      bool
}

// IsClone says whether a guest of the server is the source.
func (s TemplateSource) IsClone() bool { return s.CloneID != 0 || s.CloneName != "" }

// Kind and Reference are the source in the manifest's words.
func (s TemplateSource) Kind() string {
	switch {
	case s.IsClone():
		return "clone_vm"
	case s.URL != "":
		return "template_url"
	case s.Image != "":
		return "oci"
	}
	return "os_template"
}

// Reference is what the source was, for people and for the marker.
func (s TemplateSource) Reference() string {
	switch {
	case s.CloneID != 0:
		return fmt.Sprintf("%d", s.CloneID)
	case s.CloneName != "":
		return s.CloneName
	case s.URL != "":
		return s.URL
	case s.Image != "":
		return s.Image
	}
	return s.File
}

// fileName is the name that a fetched file gets on the storage. One that is fetched by checksum carries a part of it,
// so that another content never has the same name.
func (s TemplateSource) fileName() string {
	if s.Image != "" {
		return strings.NewReplacer("/", "_", ":", "_", "@", "_").Replace(s.Image) + ".tar"
	}
	address, _, _ := strings.Cut(s.URL, "?")
	name := path.Base(address)
	_, sum, _ := strings.Cut(s.Checksum, ":")
	for _, ending := range []string{".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2"} {
		if stem, ok := strings.CutSuffix(name, ending); ok && len(sum) >= 12 {
			return stem + "-" + sum[:12] + ending
		}
	}
	return name
}

// CheckTemplate validates a specification without any request.
func CheckTemplate(spec TemplateSpec) []Problem {
	var p problems
	name := func(attribute, name string) {
		if why := problemWithHostname(name); why != "" {
			p.add(attribute, fmt.Sprintf("%q is no DNS name", name), "It is a container's hostname, which must be a DNS name (RFC 1123): "+why+".")
		}
	}
	name("template_name", spec.Name)
	if spec.BuildName != "" {
		name("vm_name", spec.BuildName)
	}
	if n := len([]rune(spec.Description)); n > MaxDescription {
		p.add("template_description", fmt.Sprintf("It has %d characters", n), fmt.Sprintf("At most %d fit beside the ownership marker.", MaxDescription))
	}
	for _, tag := range NormalizeTags(spec.Tags) {
		if !validTag(tag) {
			p.add("tags", fmt.Sprintf("%q is no tag", tag), "Proxmox VE takes letters, digits and . _ + - in a tag, and no dash, dot or plus first.")
		}
	}
	if spec.VMID != 0 && (spec.VMID < MinVMID || spec.VMID > MaxVMID) {
		p.add("vm_id", fmt.Sprintf("%d is no id", spec.VMID), fmt.Sprintf("Ids are from %d to %d.", MinVMID, MaxVMID))
	}
	if spec.VMID != 0 && spec.VMID == spec.Source.CloneID {
		p.add("vm_id", "It is the id of the source", "A template can't be built over what it is cloned from. Choose another id, or leave vm_id out.")
	}
	checkTemplateSource(&p, spec)
	if spec.DiskGiB < 0 {
		p.add("rootfs.disk_size", "It is negative", "Give the size in GiB.")
	}
	if spec.Keep < 0 {
		p.add("keep", "It is negative", "keep is how many generations of the template stay, the new one included; leave it out to keep all.")
	}
	return p
}

func checkTemplateSource(p *problems, spec TemplateSpec) {
	s := spec.Source
	var given []string
	for _, o := range []struct {
		name string
		set  bool
	}{{"os_template", s.File != ""}, {"template_url", s.URL != ""}, {"oci_image", s.Image != ""}, {"clone_vm", s.CloneName != ""}, {"clone_vm_id", s.CloneID != 0}} {
		if o.set {
			given = append(given, o.name)
		}
	}
	const all = "os_template (a file on the server), template_url with template_checksum (the server fetches it), oci_image, clone_vm or clone_vm_id"
	switch {
	case len(given) == 0:
		p.add("os_template", "There is no source", "Set exactly one of "+all+".")
		return
	case len(given) > 1:
		p.add(given[0], "There are "+fmt.Sprint(len(given))+" sources: "+strings.Join(given, ", "), "Set exactly one of "+all+".")
		return
	}
	if s.File != "" {
		if storage, rest, ok := strings.Cut(s.File, ":"); !ok || !validID(storage) || !strings.HasPrefix(rest, "vztmpl/") {
			p.add("os_template", fmt.Sprintf("%q is no template file", s.File), `A template file is a volume id such as "local:vztmpl/debian-13-standard_13.1-2_amd64.tar.zst" (pveam list local).`)
		}
	}
	if s.URL != "" {
		checkTemplateURL(p, s)
	} else if s.Checksum != "" {
		p.add("template_checksum", "There is nothing to check", "It goes with template_url.")
	}
	if s.Full && !s.IsClone() {
		p.add("full_clone", "There is nothing to clone", "It goes with clone_vm or clone_vm_id.")
	}
}

// checksumLengths are the lengths of the sums in hex digits.
var checksumLengths = map[string]int{"sha256": 64, "sha384": 96, "sha512": 128}

func checkTemplateURL(p *problems, s TemplateSource) {
	if !strings.HasPrefix(s.URL, "https://") && !strings.HasPrefix(s.URL, "http://") {
		p.add("template_url", fmt.Sprintf("%q is no address", s.URL), "The server fetches http and https addresses.")
	}
	name := s.fileName()
	known := false
	for _, ending := range []string{".tar.gz", ".tar.xz", ".tar.zst", ".tar.bz2"} {
		known = known || strings.HasSuffix(name, ending)
	}
	if !known {
		p.add("template_url", fmt.Sprintf("%q is no name of a template file", name), "Proxmox VE takes files that end in .tar.gz, .tar.xz, .tar.zst or .tar.bz2.")
	}
	algorithm, sum, ok := strings.Cut(s.Checksum, ":")
	want := checksumLengths[algorithm]
	switch {
	case s.Checksum == "":
		p.add("template_checksum", "It is missing", `What is fetched from the network must be what was meant: give "sha256:<64 hex digits>" (or sha384, sha512) of the file.`)
	case !ok || want == 0:
		p.add("template_checksum", fmt.Sprintf("%q names no algorithm", s.Checksum), `Write "sha256:…", "sha384:…" or "sha512:…".`)
	case len(sum) != want || strings.Trim(strings.ToLower(sum), "0123456789abcdef") != "":
		p.add("template_checksum", fmt.Sprintf("It is no %s sum", algorithm), fmt.Sprintf("A %s sum has %d hex digits.", algorithm, want))
	}
}
