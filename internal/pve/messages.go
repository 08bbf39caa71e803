package pve

import (
	"regexp"
	"strings"
)

// verdict is what the table says of an answer.
type verdict struct {
	meaning                   Meaning
	lockedBy, privilege, path string
}

// classify is the one place that reads the server's messages. status is that of
// an answer, 0 for the exit status of a task; params are the messages of refused
// parameters.
//
// Proxmox VE reports nearly every failure, "does not exist" included, as status
// 500 with a sentence. Only the sentences below are understood, each in full:
// another 500 stays Unknown, and "does not exist" alone means nothing, for it is
// said of volumes, storages, bridges and pools as well.
func classify(status int, message string, params map[string]string) verdict {
	if v, ok := byParameter(params); ok {
		return v
	}
	text := significant(message)
	if status == 403 {
		if v := byPermission(text); v.meaning != Unknown {
			return v
		}
	}
	for _, rule := range messageRules {
		m := rule.text.FindStringSubmatch(text)
		if m == nil || (rule.status != 0 && status != 0 && rule.status != status) {
			continue
		}
		v := verdict{meaning: rule.meaning}
		if rule.meaning == Locked && len(m) > 1 {
			v.lockedBy = m[1]
		}
		return v
	}
	return verdict{meaning: byStatus(status, text)}
}

// prefixes are what the server puts before the sentence that matters, in calls
// ("update pools failed: …") and in the exit status of tasks ("unable to create
// CT 211 - …").
var prefixes = regexp.MustCompile(`^(?:unable to (?:create|restore|clone) (?:CT|VM) \d+ - |[A-Za-z ]+ failed: )`)

// significant returns the first line of a message, without what is put before
// it.
func significant(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	line = strings.TrimSpace(line)
	return strings.TrimSpace(prefixes.ReplaceAllString(line, ""))
}

type messageRule struct {
	meaning Meaning
	text    *regexp.Regexp
	// status narrows the rule to answers of that status; 0 is any.
	status int
}

func rule(m Meaning, text string) messageRule {
	return messageRule{meaning: m, text: regexp.MustCompile(text)}
}

// messageRules are tried in their order. The comments name where a sentence is
// said, when it isn't plain.
var messageRules = []messageRule{
	// Guests.
	rule(NoSuchGuest, `^Configuration file 'nodes/[^/]+/(?:lxc|qemu-server)/\d+\.conf' does not exist$`),
	rule(NoSuchTarget, `^could not find (?:CT|VM) \d+$`),
	rule(GuestExists, `^(?:CT|VM) \d+ already exists(?: on node '[^']*')?$`),
	rule(NotRunning, `^(?:CT|VM) \d+ not running$`),
	rule(AlreadyRunning, `^(?:CT|VM) \d+ already running$`),
	rule(GuestRunning, `^unable to destroy (?:CT|VM) \d+ - (?:container|VM) is running$`),
	rule(GuestRunning, `^cannot move volumes of a running container$`),
	rule(GuestRunning, `^Cannot move in-use volume while the source (?:CT|VM) is running`),
	rule(GuestRunning, `^can't migrate running container without --online or --restart$`),
	rule(GuestRunning, `^Full clone of a running container is only possible from a snapshot$`),
	rule(GuestRunning, `^you can't convert a (?:CT|VM|container) to template if the (?:CT|VM|container) is running`),
	rule(StartFailed, `^startup for container '\d+' failed$`),
	rule(Protected, `^can't (?:remove|update) (?:CT|VM) \d+ .*- protection mode enabled$`),
	rule(HAManaged, `^unable to remove (?:CT|VM) \d+ - used in HA resources and purge parameter not set`),
	rule(IsTemplate, `if it's a template$`),
	rule(IsTemplate, `^you can't convert a template to a template$`),
	rule(IsTemplate, `^Can't move volumes from or to template (?:CT|VM)$`),

	// Locks. "CT is locked" names the operation that holds the guest; the others
	// are lock files that the server waited for in vain, 10 s for a guest's.
	rule(Locked, `^(?:CT|VM) is locked \(([^)]+)\)$`),
	rule(LockTimeout, `can't lock file '[^']+' - got timeout`),
	rule(LockTimeout, `^Failed to obtain guest migration lock - replication running\?$`),
	rule(LockTimeout, `got lock request timeout`),
	rule(DigestMismatch, `^detected modified configuration - file changed by other user\? Try again\.`),

	// Volumes, storages, snapshots.
	rule(StillInUse, `^base volume '[^']+' is still in use by linked clone`),
	rule(CannotShrink, `^unable to shrink disk size$`),
	rule(SameSize, `^disk is already at specified size$`),
	rule(NoSuchStorage, `^storage '[^']+' does not exist$`),
	rule(NoSuchVolume, `^volume '[^']+'(?: for container '\d+')? does not exist$`),
	rule(NoSuchVolume, `^volume_size_info on '[^']+' failed$`), // GET of a file that is gone
	rule(NoSuchGuest, `^unable to find (?:VM|CT) '\d+'$`),      // a backup's log
	rule(NoSpace, `No space left on device`),
	rule(Protected, `^cannot remove protected volume '[^']+' on '[^']+'$`),
	rule(NoSuchSnapshot, `^snapshot '[^']+' does not exist$`),
	rule(SnapshotExists, `^snapshot name '[^']+' already used$`),
	rule(InvalidParameter, `^unable to use snapshot name '[^']+' \(reserved name\)$`),
	rule(HasSnapshots, `^unable to create template, because (?:CT|VM) contains snapshots$`),
	rule(HasSnapshots, `^Cannot move volume used by a snapshot to another (?:container|VM)$`),
	rule(Unsupported, `^snapshot feature is not available$`),
	rule(Unsupported, `^Linked clone feature for '[^']+' is not available$`),
	rule(Unsupported, `^unable to clone mountpoint '[^']+' \(type [a-z]+\)$`),
	rule(InvalidParameter, `^parameter '[^']+' not allowed for linked clones$`),
	rule(LocalStorage, `^can't clone (?:CT|VM) to node '[^']+' \((?:CT|VM) uses local storage\)$`),
	rule(VolumeBusy, `^Target volume key '[^']+' is already in use for (?:container|VM) '\d+'$`),
	rule(VolumeBusy, `^Moving an unused volume to a used one is not possible$`),
	rule(InvalidParameter, `^Cannot move to/from 'rootfs'$`),

	// Configuration.
	rule(NoChange, `^no options specified$`),
	rule(InvalidParameter, `^unable to modify read-only option: '[^']+'$`),
	rule(InvalidParameter, `^unable to delete required option '[^']+'$`),
	rule(InvalidParameter, `^SSH public key validation error$`),
	rule(InvalidParameter, `^format error$`),
	rule(NoSuchBridge, `^bridge '[^']+' does not exist$`),
	rule(RootOnly, `^Only root can pass arbitrary filesystem paths\b`),

	rule(NoQuorum, `^cluster not ready - no quorum\?$`),

	// Nodes. The second is said by the node that was asked, of a name that it
	// can't resolve.
	rule(NoSuchNode, `^no such cluster node '[^']*'$`),
	rule(NoSuchNode, `^hostname lookup '[^']*' failed - `),

	// Pools. A pool that is missing is a 403 where a guest is created in it.
	rule(NoSuchPool, `^pool '[^']+' does not exist$`),
	rule(NoSuchPool, `^parent '[^']+' of pool '[^']+' does not exist$`),
	rule(AlreadyMember, `^(?:VM|Storage) '?[^ ]+ is already a pool member$`),
	rule(OtherPool, `^VM \d+ belongs already to pool '[^']+' and 'allow-move' is not set$`),
	rule(NotMember, `^(?:VM|Storage) '?[^ ]+ is not a pool member$`),
	rule(NotEmpty, `^pool '[^']+' is not empty \(`),

	// Firewall and access.
	rule(NotEmpty, `^(?:Security group|IPSet) '[^']+' is not empty$`),
	rule(NoSuchObject, `^no such (?:security group|IPSet|alias|token|user) (?:\('[^']+'\)|'[^']+'(?: for user '[^']+')?)$`),
	rule(NoSuchObject, `^no rule at position \d+$`),
	rule(NoSuchObject, `^(?:user|role|group) '[^']+' does not exist$`),
	rule(AlreadyExists, `^(?:user|role|pool|group|token) '[^']+' already exists$`),
	rule(InvalidParameter, `^user name '[^']+' is too short$`),

	// Work that ended before its time.
	rule(Aborted, `(?:interrupted by signal|received interrupt)$`),
	rule(Aborted, `^unexpected status$`), // a stopped task's exit status

	// What isn't about a guest.
	rule(Failed, `^Timeout while waiting for port '\d+' to get ready!$`),
	rule(Failed, `^QEMU guest agent is not running$`),
	rule(Failed, `^invalid server response: `),
	rule(InvalidParameter, `expected, at character offset \d+`), // a broken JSON body
	{InvalidParameter, regexp.MustCompile(`^Unexpected content for method '[A-Z]+'`), 501},
	{InvalidParameter, regexp.MustCompile(`^upload 'Content-Type `), 506},
}

// parameterRules are for a 400 with one refused parameter; the others are just
// InvalidParameter.
var parameterRules = []struct {
	meaning Meaning
	// param is the parameter's name, "" for any.
	param string
	text  *regexp.Regexp
}{
	{GuestExists, "vmid", regexp.MustCompile(`^(?:CT|VM) \d+ already exists$`)}, // GET /cluster/nextid
	{NoSuchTask, "upid", regexp.MustCompile(`^no such task$`)},
	{NoSuchStorage, "storage", regexp.MustCompile(`^No such storage\.$`)},
	{RootOnly, "", regexp.MustCompile(`^Only root may use this option\.$`)},
	{AlreadyExists, "", regexp.MustCompile(`^(?:Security group|IPSet|alias|address) '[^']+' (?:does )?already exists?$`)},
	{AlreadyExists, "tokenid", regexp.MustCompile(`^Token already exists\.$`)},
	{NoSuchObject, "", regexp.MustCompile(`^Security group '[^']+' does not exist$`)},
	{NoSuchObject, "", regexp.MustCompile(`^no such (?:ipset|alias)(?: '[^']+')?$`)},
	{NoSuchObject, "iface", regexp.MustCompile(`^interface does not exist$`)},
	{NoSuchObject, "template", regexp.MustCompile(`^no such template$`)},
}

func byParameter(params map[string]string) (verdict, bool) {
	if len(params) != 1 {
		return verdict{meaning: InvalidParameter}, len(params) > 1
	}
	for name, text := range params {
		text = strings.TrimSpace(text)
		for _, r := range parameterRules {
			if (r.param == "" || r.param == name) && r.text.MatchString(text) {
				return verdict{meaning: r.meaning}, true
			}
		}
	}
	return verdict{meaning: InvalidParameter}, true
}

var (
	permissionForm = regexp.MustCompile(`^Permission check failed \((.*)\)$`)
	privilegeForm  = regexp.MustCompile(`^(/?[^,]*), ([A-Za-z][A-Za-z.]*(?:\|[A-Za-z][A-Za-z.]*)*)$`)
)

// byPermission reads what a 403 is about: usually "(path, privilege)", but also
// a pool that doesn't exist, and what no token may do.
func byPermission(text string) verdict {
	m := permissionForm.FindStringSubmatch(text)
	if m == nil {
		return verdict{meaning: Forbidden}
	}
	about := m[1]
	if strings.HasSuffix(about, "only allowed for root@pam") {
		return verdict{meaning: RootOnly}
	}
	if p := privilegeForm.FindStringSubmatch(about); p != nil {
		return verdict{meaning: Forbidden, path: p[1], privilege: p[2]}
	}
	if strings.HasPrefix(about, "pool '") && strings.HasSuffix(about, "' does not exist") {
		return verdict{meaning: NoSuchPool}
	}
	return verdict{meaning: Forbidden}
}

// byStatus is for messages that no rule knows.
func byStatus(status int, text string) Meaning {
	switch status {
	case 400:
		return InvalidParameter
	case 401:
		return Unauthorised
	case 403:
		return Forbidden
	case 501:
		return UnsupportedPath // "Method 'GET /x' not implemented"
	case 595, 596, 597, 598, 599:
		return NodeUnreachable
	case 429, 502, 503, 504:
		return Overloaded
	case 405:
		return NotProxmox
	case 404:
		// Proxmox VE has a sentence of its own where it uses 404 at all.
		if text == "" || text == "Not Found" {
			return NotProxmox
		}
	}
	if status >= 300 && status < 400 {
		return NotProxmox
	}
	return Unknown
}
