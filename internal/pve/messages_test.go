package pve

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestMessagesMeanWhatTheServerSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status  int
		message string
		param   string // name=text of a refused parameter
		want    verdict
	}{
		{500, "Configuration file 'nodes/pve1/lxc/9999.conf' does not exist", "", verdict{meaning: NoSuchGuest}},
		{500, "Configuration file 'nodes/pve1/qemu-server/310.conf' does not exist", "", verdict{meaning: NoSuchGuest}},
		{500, "could not find CT 499", "", verdict{meaning: NoSuchTarget}},
		{500, "CT 220 already exists on node 'pve1'", "", verdict{meaning: GuestExists}},
		{500, "unable to create CT 400 - CT 400 already exists on node 'pve1'", "", verdict{meaning: GuestExists}},
		{400, "Parameter verification failed.", "vmid=VM 9000 already exists", verdict{meaning: GuestExists}},
		{500, "CT is locked (disk)", "", verdict{meaning: Locked, lockedBy: "disk"}},
		{500, "CT is locked (snapshot-delete)", "", verdict{meaning: Locked, lockedBy: "snapshot-delete"}},
		{0, "can't lock file '/run/lock/lxc/pve-config-250.lock' - got timeout", "", verdict{meaning: LockTimeout}},
		{0, "unable to create CT 101 - can't lock file '/var/lock/pve-manager/pve-storage-tank' - got timeout", "", verdict{meaning: LockTimeout}},
		{0, "Failed to obtain guest migration lock - replication running?", "", verdict{meaning: LockTimeout}},
		{500, "error during cfs-locked 'file-user_cfg' operation: got lock request timeout", "", verdict{meaning: LockTimeout}},
		{500, "detected modified configuration - file changed by other user? Try again.", "", verdict{meaning: DigestMismatch}},
		{500, "CT 230 already running", "", verdict{meaning: AlreadyRunning}},
		{500, "CT 230 not running", "", verdict{meaning: NotRunning}},
		{500, "VM 230 not running", "", verdict{meaning: NotRunning}},
		{500, "unable to destroy CT 230 - container is running", "", verdict{meaning: GuestRunning}},
		{500, "can't remove CT 230 - protection mode enabled", "", verdict{meaning: Protected}},
		{500, "can't update CT 430 drive 'mp0' - protection mode enabled", "", verdict{meaning: Protected}},
		{500, "unable to remove CT 100 - used in HA resources and purge parameter not set.", "", verdict{meaning: HAManaged}},
		{0, "you can't start a CT if it's a template", "", verdict{meaning: IsTemplate}},
		{500, "unable to shrink disk size", "", verdict{meaning: CannotShrink}},
		{500, "disk is already at specified size", "", verdict{meaning: SameSize}},
		{500, "no such cluster node 'nosuch'", "", verdict{meaning: NoSuchNode}},
		{500, "hostname lookup 'x' failed - failed to get address info for: x: Name or service not known", "", verdict{meaning: NoSuchNode}},
		{500, "storage 'nosuch' does not exist", "", verdict{meaning: NoSuchStorage}},
		{400, "Parameter verification failed.", "storage=No such storage.", verdict{meaning: NoSuchStorage}},
		{500, "volume_size_info on 'local:backup/vzdump-lxc-290-2026_12_01-05_07_42.tar' failed", "", verdict{meaning: NoSuchVolume}},
		{0, "unable to find VM '9997'", "", verdict{meaning: NoSuchGuest}},
		{0, "zstd: error 70 : Write error : cannot write block : No space left on device", "", verdict{meaning: NoSpace}},
		{0, "cannot remove protected volume 'local:backup/x.tar' on 'local'", "", verdict{meaning: Protected}},
		{500, "snapshot 'nosuch' does not exist", "", verdict{meaning: NoSuchSnapshot}},
		{0, "snapshot name 'one' already used", "", verdict{meaning: SnapshotExists}},
		{0, "base volume 'tank:base-900-disk-0' is still in use by linked clones", "", verdict{meaning: StillInUse}},
		{0, "bridge 'vmbr9' does not exist", "", verdict{meaning: NoSuchBridge}},
		{500, "pool 'nosuch' does not exist", "", verdict{meaning: NoSuchPool}},
		{403, "Permission check failed (pool 'nosuch' does not exist)", "", verdict{meaning: NoSuchPool}},
		{500, "update pools failed: VM 260 is already a pool member", "", verdict{meaning: AlreadyMember}},
		{500, "update pools failed: VM 260 belongs already to pool 'p1' and 'allow-move' is not set", "", verdict{meaning: OtherPool}},
		{500, "update pools failed: VM 260 is not a pool member", "", verdict{meaning: NotMember}},
		{400, "Parameter verification failed.", "upid=no such task", verdict{meaning: NoSuchTask}},
		{0, "startup for container '401' failed", "", verdict{meaning: StartFailed}},
		{403, "Permission check failed (/vms/9000, VM.Clone)", "", verdict{meaning: Forbidden, path: "/vms/9000", privilege: "VM.Clone"}},
		{403, "Permission check failed (/vms/200, VM.Config.Disk|VM.Config.CPU)", "", verdict{meaning: Forbidden, path: "/vms/200", privilege: "VM.Config.Disk|VM.Config.CPU"}},
		{403, "Permission check failed (, Pool.Allocate)", "", verdict{meaning: Forbidden, privilege: "Pool.Allocate"}},
		{403, "Permission check failed", "", verdict{meaning: Forbidden}},
		{403, "Permission check failed (changing feature flags (except nesting) is only allowed for root@pam)", "", verdict{meaning: RootOnly}},
		{400, "Parameter verification failed.", "skiplock=Only root may use this option.", verdict{meaning: RootOnly}},
		{401, "Authentication failed!", "", verdict{meaning: Unauthorised}},
		{401, "", "", verdict{meaning: Unauthorised}},
		{501, "Method 'GET /nosuchpath' not implemented", "", verdict{meaning: UnsupportedPath}},
		{595, "Connection refused", "", verdict{meaning: NodeUnreachable}},
		{596, "tls_process_server_certificate: certificate verify failed", "", verdict{meaning: NodeUnreachable}},
		{599, "Too many redirections", "", verdict{meaning: NodeUnreachable}},
		{503, "Service Unavailable", "", verdict{meaning: Overloaded}},
		{404, "Not Found", "", verdict{meaning: NotProxmox}},
		{301, "Moved Permanently", "", verdict{meaning: NotProxmox}},
		{400, "Parameter verification failed.", "memory=value must have a minimum value of 16", verdict{meaning: InvalidParameter}},
	} {
		t.Run(fmt.Sprintf("%d %s %s", c.status, c.message, c.param), func(t *testing.T) {
			var params map[string]string
			if name, text, ok := strings.Cut(c.param, "="); ok {
				params = map[string]string{name: text}
			}
			if got := classify(c.status, c.message, params); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// What isn't there must be said of exactly the thing that was asked for: other
// sentences with the same words drop nothing from anybody's state.
func TestNothingElseIsTakenForAMissingGuest(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"unable to create CT 100 - volume 'local:vztmpl/x.tar.gz' does not exist",
		"volume 'local-btrfs:430/vm-430-disk-0.raw' does not exist",
		"storage 'nosuch' does not exist",
		"snapshot 'nosuch' does not exist",
		"bridge 'vmbr9' does not exist",
		"pool 'x' does not exist",
		"unable to open file '/etc/pve/nodes/pve1/lxc/100.conf' - No such file or directory",
		"Configuration file 'nodes/pve1/lxc/100.conf' does not exist anywhere",
		"rbd error: Configuration file 'nodes/pve1/lxc/100.conf' does not exist, or so",
		"internal server error",
		"got no worker upid - start worker failed",
		"",
	} {
		for _, status := range []int{0, 400, 403, 404, 500, 596} {
			if got := classify(status, message, nil).meaning; got == NoSuchGuest {
				t.Errorf("%d %q means %q", status, message, got)
			}
		}
	}
}

func TestA500ThatNobodyKnowsMeansNothing(t *testing.T) {
	t.Parallel()
	if got := classify(500, "something new went wrong", nil).meaning; got != Unknown {
		t.Errorf("got %q", got)
	}
	if Means(&Error{Status: 500}, Unknown) {
		t.Error("an unknown meaning must never match")
	}
}

func TestEveryRecordedErrorHasAMeaning(t *testing.T) {
	t.Parallel()
	answers, tasks, understood := 0, 0, map[Meaning]int{}
	for _, e := range recorded(t) {
		switch {
		case e.Kind == "task":
			var task struct {
				ExitStatus string `json:"exitstatus"`
			}
			if err := json.Unmarshal(e.Task, &task); err != nil {
				t.Fatal(err)
			}
			if succeeded(task.ExitStatus) {
				continue
			}
			tasks++
			v := classify(0, task.ExitStatus, nil)
			understood[v.meaning]++
			if v.meaning == Unknown {
				t.Errorf("%s %d: exit status %q has no meaning", e.Flow, e.N, task.ExitStatus)
			}
		case e.Status >= 300:
			answers++
			message, params := recordedMessage(e)
			v := classify(e.Status, message, params)
			understood[v.meaning]++
			if v.meaning == Unknown {
				t.Errorf("%s %d: %d %q %v has no meaning", e.Flow, e.N, e.Status, message, params)
			}
			checkAgainstWords(t, e, message, v)
		}
	}
	if answers < 200 || tasks < 15 {
		t.Errorf("only %d recorded answers and %d failed tasks: is the folder complete?", answers, tasks)
	}
	for _, m := range []Meaning{NoSuchGuest, Locked, LockTimeout, GuestExists, NotRunning, AlreadyRunning, DigestMismatch, Forbidden, Unauthorised} {
		if understood[m] == 0 {
			t.Errorf("no recorded error means %q", m)
		}
	}
}

func recordedMessage(e exchange) (string, map[string]string) {
	var body struct {
		Message string            `json:"message"`
		Errors  map[string]string `json:"errors"`
	}
	if json.Unmarshal(e.Body, &body) != nil || body.Message == "" {
		return e.Reason, nil
	}
	return body.Message, body.Errors
}

// checkAgainstWords compares a verdict with the words of the answer, from both
// sides: the table may neither miss a plain case nor see one in others.
func checkAgainstWords(t *testing.T, e exchange, message string, v verdict) {
	t.Helper()
	for _, w := range []struct {
		meaning Meaning
		is      bool
	}{
		{NoSuchGuest, strings.HasPrefix(message, "Configuration file ")},
		{Locked, strings.HasPrefix(message, "CT is locked (")},
		{Unauthorised, e.Status == 401},
		{DigestMismatch, strings.HasPrefix(message, "detected modified configuration")},
	} {
		if (v.meaning == w.meaning) != w.is {
			t.Errorf("%s %d: %d %q means %q", e.Flow, e.N, e.Status, message, v.meaning)
		}
	}
	if v.meaning == Locked && v.lockedBy == "" {
		t.Errorf("%s %d: %q: locked by what?", e.Flow, e.N, message)
	}
	if strings.Contains(message, "(/") && v.meaning == Forbidden && (v.path == "" || v.privilege == "") {
		t.Errorf("%s %d: %q: path %q, privilege %q", e.Flow, e.N, message, v.path, v.privilege)
	}
}
