// Package audit says how well a sandbox, or the template that it is cloned from,
// is closed: a list of checks, each with its proof, a score and a grade.
//
// There are three things to look at, with one kind of result: a container's
// configuration as the API shows it (Container), a root filesystem in a folder,
// and a running system that scripts can be run in. A check that could not be
// made is "unknown" and never counts as passed; one that has no object, such as
// the AppArmor profile on a kernel without AppArmor, is "not_applicable" and
// doesn't count at all.
//
// Whatever is looked at may be hostile. Its files are read within limits and
// through os.Root, links out of it are not followed, its output is parsed as
// text and never run, and what it says is quoted in evidence only in printable
// form. A root that is hostile inside a running system can lie to any audit from
// inside: it finds what was forgotten, not what is hidden. The container's
// configuration, and a template's folder, can't lie.
package audit
