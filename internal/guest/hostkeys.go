package guest

// SharedHostKey says that two guests have the same host key, as clones of a
// template do that was made with its keys: whoever is root in one can pose as
// the other.
type SharedHostKey struct {
	A, B        Target
	Fingerprint string // "SHA256:…"
}
