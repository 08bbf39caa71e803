package agents

// Agent is one coding agent.
type Agent struct {
	// Name is what configurations call it, such as "claude-code".
	Name string `json:"name"`
	// Title is its makers' name for it.
	Title    string `json:"title"`
	Homepage string `json:"homepage"`

	Source Source `json:"source"`
	// Binary is the command's name on the PATH.
	Binary   string   `json:"binary"`
	Version  Version  `json:"version"`
	Headless Headless `json:"headless"`
	// AutoApprove lets it work without asking: what a sandbox is for.
	AutoApprove Switch `json:"auto_approve"`

	Keys Keys `json:"keys"`
	// AutoUpdateOff keeps the pinned version pinned, TelemetryOff keeps it from
	// calling home.
	AutoUpdateOff Switch `json:"auto_update_off"`
	TelemetryOff  Switch `json:"telemetry_off"`

	// RefusesRoot says that it doesn't do its work, or not without asking, as root.
	RefusesRoot bool  `json:"refuses_root"`
	Needs       Needs `json:"needs"`
	// StateDirs are what it keeps in the user's home, to be wiped from a template:
	// sessions, caches and, in some, credentials. Each starts with "~/".
	StateDirs []string `json:"state_dirs"`
	// EgressDomains are the hosts that it talks to when it works with its
	// makers' own service; another provider's come on top.
	EgressDomains []string `json:"egress_domains"`
	Licence       Licence  `json:"licence"`
	// SizeMiB is what an installation takes on disk, roughly; 0 = not measured.
	SizeMiB int    `json:"size_mib"`
	Notes   string `json:"notes"`
}

// SourceKind is where an agent is installed from.
type SourceKind string

// The kinds of sources.
const (
	NPM       SourceKind = "npm"       // a package of the npm registry
	PyPI      SourceKind = "pypi"      // a package of the Python package index, installed by uv into an environment of its own
	Binary    SourceKind = "binary"    // one file or archive from a URL, with its checksum
	Installed SourceKind = "installed" // the template has it; nothing installs it
)

// Source is where an agent comes from.
type Source struct {
	Kind SourceKind `json:"kind"`
	// Package is its name at npm or PyPI.
	Package string `json:"package"`
	// Version is the pin: what is installed unless a configuration says otherwise.
	Version string `json:"version"`
	// InstallScripts says that the package's own install script must run (it
	// fetches or links a native binary); without it the command is there and dead.
	InstallScripts bool `json:"install_scripts"`
	// URL of a binary, with {version} and {arch} (x86_64 or aarch64) in it.
	URL string `json:"url"`
	// SHA256 of a binary, by architecture; empty means that a configuration must
	// give it.
	SHA256 map[string]string `json:"sha256"`
}

// Version says how the installed version is asked for.
type Version struct {
	Arguments []string `json:"arguments"`
	// Pattern finds the version in the output: its first group.
	Pattern string `json:"pattern"`
}

// PromptVia is how an agent takes its prompt.
type PromptVia string

// The ways. Only an argument shows in the list of processes.
const (
	ViaStdin    PromptVia = "stdin"
	ViaFile     PromptVia = "file"
	ViaArgument PromptVia = "argument"
)

// Headless is how an agent is started without a terminal.
type Headless struct {
	// Arguments come before everything else.
	Arguments []string  `json:"arguments"`
	PromptVia PromptVia `json:"prompt_via"`
	// PromptOption stands before the prompt's file or the prompt itself; empty
	// means that it is the last argument, by position.
	PromptOption string `json:"prompt_option"`
	// ModelOption takes the model's name.
	ModelOption string `json:"model_option"`
}

// Switch turns something on or off by arguments and environment variables.
type Switch struct {
	Arguments   []string          `json:"arguments"`
	Environment map[string]string `json:"environment"`
}

// Keys are the environment variables that an agent takes its credentials from.
type Keys struct {
	// AnyOf: one of them must be there, unless it is empty.
	AnyOf []string `json:"any_of"`
	// AllOf: each of them must be there.
	AllOf []string `json:"all_of"`
	// Optional are known and not needed.
	Optional []string `json:"optional"`
}

// Needs are what an agent needs in the guest.
type Needs struct {
	// Node is the lowest version of Node.js, such as "22.19.0".
	Node string `json:"node"`
	// Python is the lowest version, PythonBelow the first that is too new.
	Python      string `json:"python"`
	PythonBelow string `json:"python_below"`
	// Commands must be on the PATH.
	Commands []string `json:"commands"`
	// UserNamespaces says that its own inner sandbox needs them: nesting=1.
	UserNamespaces bool `json:"user_namespaces"`
}

// Licence is what may be done with it.
type Licence struct {
	// Name is an SPDX expression; LicenseRef-Proprietary where the makers' terms hold.
	Name string `json:"name"`
	// Redistributable says whether a template with it may be handed to others.
	// Where not, each user installs it into templates of their own.
	Redistributable bool `json:"redistributable"`
}
