package sandbox

import (
	"context"
	"errors"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/secrets"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/workcopy"
)

// Code is a stable name of a kind of failure, "SBX204". It stays the same when texts change, so that people can look
// for it and programs decide by it; a code that is no longer used is not given again.
type Code string

// CodeInfo explains a code.
type CodeInfo struct {
	Code   Code
	Title  string
	Means  string
	Remedy string
	match  func(error) bool
}

// The codes that other packages give themselves.
const (
	// CodeConfiguration is for problems with a configuration, found before anything is changed.
	CodeConfiguration Code = "SBX100"
	// CodeUnknownProvider is for a provider block that isn't known yet.
	CodeUnknownProvider Code = "SBX102"
	// CodeForbidden is for a missing privilege.
	CodeForbidden Code = "SBX204"
	// CodeCommandFailed is for a command that ended with another exit code than 0
	// where that is to be an error.
	CodeCommandFailed Code = "SBX508"
	// CodeRunFailed is for a run that didn't succeed where that is to be an error.
	CodeRunFailed Code = "SBX606"
	// CodeUnclassified is for everything that has no code of its own.
	CodeUnclassified Code = "SBX900"
)

// Codes lists every code, by number: the table of the documentation.
func Codes() []CodeInfo {
	out := make([]CodeInfo, len(codes))
	copy(out, codes)
	return out
}

// CodeOf says which kind of failure err is.
func CodeOf(err error) Code {
	for _, code := range codePrecedence {
		for _, info := range codes {
			if info.Code == code && info.match(err) {
				return code
			}
		}
	}
	for _, info := range codes {
		if info.match(err) {
			return info.Code
		}
	}
	return CodeUnclassified
}

// codePrecedence are the codes that win when an error is of several kinds: what the domain concluded says more than
// the message that it concluded it from.
var codePrecedence = []Code{"SBX601", "SBX602", "SBX603", "SBX604", "SBX605", "SBX702", "SBX705", "SBX313", "SBX312", "SBX502", "SBX503", "SBX504", "SBX301", "SBX302", "SBX303"}

func is(kinds ...error) func(error) bool {
	return func(err error) bool {
		for _, k := range kinds {
			if errors.Is(err, k) {
				return true
			}
		}
		return false
	}
}

func means(meanings ...pve.Meaning) func(error) bool {
	return func(err error) bool { return pve.Means(err, meanings...) }
}

func as[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}

func either(matches ...func(error) bool) func(error) bool {
	return func(err error) bool {
		for _, m := range matches {
			if m(err) {
				return true
			}
		}
		return false
	}
}

func never(error) bool { return false }

// noAnswer leaves out requests that the end of a limit cut off: the limit says more.
func noAnswer(err error) bool {
	return as[*pve.TransportError](err) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled)
}

var codes = []CodeInfo{
	// 1xx: the configuration.
	{CodeConfiguration, "The configuration can't be right", "An attribute, or several together, can't be what is meant; nothing was changed.",
		"The message names the attribute and what it may be.", as[*ProblemsError]},
	{"SBX101", "No owner", "The provider writes its owner into every container, to know its own; without one it writes nothing.",
		"Set `owner` in the provider block, or `SANDBOX_OWNER`.", is(ErrNoOwner)},
	{CodeUnknownProvider, "The provider block is not known yet", "It depends on values that are only known after apply.",
		"Create what these come from first (`-target`), or give the values directly.", never},

	// 2xx: the way to the server, and what it lets us do.
	{"SBX201", "The server's certificate is not trusted", "It is self-signed, expired or another than the pinned one.",
		"Compare the fingerprint in the message with the one under Node, Certificates in the web interface; if it is the same, set `fingerprint`, or `ca_file` to the server's `pve-root-ca.pem`.", as[*pve.TLSError]},
	{"SBX202", "The server gave no answer", "The address, the network on the way or the server is at fault. A write whose answer was lost is looked for by the next apply.",
		"Check `endpoint` (`https://host:8006`), firewalls and `HTTPS_PROXY`; then apply again.", noAnswer},
	{"SBX203", "The server refused the credentials", "The token or login doesn't exist, is misspelt, disabled or expired.",
		"A token is `user@realm!name=uuid`, with the realm; `pveum user token list USER` shows what there is.", means(pve.Unauthorised)},
	{CodeForbidden, "A privilege is missing", "The identity may not do this. A token with privilege separation needs the privilege itself, besides its user.",
		"The data source `sandbox_preflight` lists what is missing, with the commands that grant it.", means(pve.Forbidden)},
	{"SBX205", "Only root@pam may do this", "Features other than nesting, bind mounts, devices and hookscripts are for a login as root@pam with its password. No token may, not even root's.",
		"Bake it into the template.", means(pve.RootOnly)},
	{"SBX206", "What answers is not the expected API", "Another service, an error page of a proxy, or a version of Proxmox VE without this call.",
		"Check host, port and proxies; Proxmox VE 8 and 9 are supported.", either(means(pve.NotProxmox, pve.UnsupportedPath), as[*pve.AnswerError])},
	{"SBX207", "A node can't be reached", "The node that answered can't reach the one that is meant. What is there stays in state.",
		"Bring the node back, or see to the cluster's network and certificates (`pvecm status`, `pvecm updatecerts`).", means(pve.NodeUnreachable)},
	{"SBX208", "The server is overloaded", "It kept answering that it has no capacity (429, 502 to 504), longer than retries last.",
		"Lower `-parallelism` or `max_clones`, and apply again.", means(pve.Overloaded)},
	{"SBX209", "The cluster has no quorum", "Too few of its nodes see each other, so that the server writes nothing.",
		"Bring nodes back (`pvecm status`); then apply again.", means(pve.NoQuorum)},

	// 3xx: what is there.
	{"SBX301", "The container does not exist", "The server said so itself, when it was asked directly.",
		"Apply again: a container that is gone is planned anew.", either(is(ErrGone), means(pve.NoSuchGuest))},
	{"SBX302", "The guest with this id is not ours", "Its ownership marker names another owner, claim or id, or there is none. It was left alone.",
		"`terraform state rm` the resource if its container is gone for good; see to the guest by hand.", is(ErrForeign)},
	{"SBX303", "The guest carries no marker", "Only containers that carry this provider's marker are imported.",
		"Set `adopt = true` in the provider block to have import write one.", is(ErrUnmarked)},
	{"SBX304", "No id is free, or the id is taken", "The range is used up, or another guest has the wanted id.",
		"Widen `vmid_range`, remove containers that are not needed, or leave `vmid` out.", either(is(ErrNoFreeID), means(pve.GuestExists))},
	{"SBX305", "The name is taken", "An object with that name exists and was not made by this resource.",
		"Choose another name, or import the object.", either(is(ErrSnapshotExists, ErrWorkspaceExists, ErrGroupExists, ErrGuardExists, ErrPoolExists, ErrExposureExists), means(pve.AlreadyExists, pve.SnapshotExists))},
	{"SBX306", "Something that is named does not exist", "A node, storage, volume, bridge, Proxmox pool, snapshot or template is missing, or hidden from the identity.",
		"Check the name; `sandbox_preflight` shows nodes, storages and bridges as the identity sees them.",
		either(is(ErrNoSnapshot, ErrNoHolder, ErrNoVolume, ErrNoTemplate), means(pve.NoSuchNode, pve.NoSuchStorage, pve.NoSuchVolume, pve.NoSuchSnapshot, pve.NoSuchBridge, pve.NoSuchPool, pve.NoSuchObject, pve.NoSuchTarget))},
	{"SBX307", "It is in use", "Linked clones, snapshots, members or other containers depend on it.",
		"Remove what depends on it first; the message names it where the server does.",
		either(is(ErrInUse, ErrHeld, ErrHasSnapshots, ErrGroupInUse, ErrPoolInUse), means(pve.StillInUse, pve.VolumeBusy, pve.NotEmpty, pve.HasSnapshots, pve.OtherPool))},
	{"SBX308", "It is protected", "The protection flag is set.", "Set `protection = false`, apply, then destroy.", either(is(ErrProtected), means(pve.Protected))},
	{"SBX309", "It is managed by HA", "The high-availability manager would undo the change.",
		"Take it out of HA (`ha-manager remove ct:ID`), or let HA do it.", either(is(ErrHAManaged), means(pve.HAManaged))},
	{"SBX310", "Somebody else keeps changing it", "The configuration was changed between reading and writing, more than once.",
		"Find the other writer (the task log names it), and apply again.", either(is(ErrChangedOutside), means(pve.DigestMismatch))},
	{"SBX311", "Somebody would be locked out", "Turning the datacenter's firewall on or off would take access, or a filter, from those that the message names. Nothing was changed.",
		"See to each of them; guests of others that may be filtered are named in `accept_guests`.", is(ErrLockout)},
	{"SBX312", "The firewall isn't as the network mode asks for", "The server took the container's rules or switches only in part, or somebody else writes them too. Nothing was started behind it.",
		"Apply again; if it stays, see who else writes the container's firewall (the node's task log and `sandbox_diagnostics`).", is(ErrWall)},
	{"SBX313", "The container reached what its network mode forbids", "It was tried from inside after its rules should have been in force. Its link is down and it is stopped.",
		"See whether `pve-firewall` runs on the node (`systemctl status pve-firewall`), and whether another rule lets the container through.", is(ErrExposed)},
	{"SBX314", "No member of the pool can be claimed", "All are claimed, or none is ready.",
		"Apply the pool, which makes new members; raise its `size`; or set `on_empty = \"clone\"`.", is(ErrPoolEmpty)},

	// 4xx: work on the server.
	{"SBX401", "It is locked", "Another operation held the lock until time ran out: a backup, a snapshot, a clone, or one that died.",
		"Wait for it; a lock that nothing holds any more is removed with `pct unlock ID` on the node.", either(is(ErrLocked), means(pve.Locked, pve.LockTimeout))},
	{"SBX402", "The storage can't do that", "The storage makes no snapshots or linked clones, can't shrink a disk, or is local to another node.",
		"`sandbox_preflight` shows what each storage can do. ZFS, LVM-thin, btrfs and Ceph RBD can do most.", means(pve.Unsupported, pve.LocalStorage, pve.CannotShrink)},
	{"SBX403", "The storage is full", "There was no space left.", "Free or add space; what a failed creation left is removed by the next apply.", means(pve.NoSpace)},
	{"SBX404", "The container is not running", "The operation needs it to run.", "Set `started = true`.", either(is(ErrNotRunning), means(pve.NotRunning))},
	{"SBX405", "The container did not start", "The node could not start it.",
		"The task's log is in the message; `sandbox_diagnostics` shows configuration and log. A bridge that is missing and a full storage are common.", means(pve.StartFailed)},
	{"SBX406", "A command is under way inside", "The operation would take the container from under it.", "Wait for it, or set `force`.", is(ErrBusy)},
	{"SBX407", "The pool is not full", "Members could not be made or replaced; the message says why. Those that are ready stay.",
		"See to the cause, and apply again: it goes on with what is missing.", is(ErrPoolShort)},

	{"SBX431", "A reaper is about to destroy it", "Its lease was over, and a `sandbox_reaper` has marked it before this run renewed it. Nothing was changed.",
		"Apply again: a container that is gone is planned anew. One that is still there in ten minutes is free again.", is(ErrReaping)},
	{"SBX432", "The clocks disagree", "This machine's clock and the server's differ by more than five minutes, so that neither tells whether a lease is over. Nothing was destroyed.",
		"Set up time synchronisation (`chrony`) on both; `timedatectl` and `date` show what each believes.", is(ErrClock)},

	// 5xx: inside a guest.
	{"SBX501", "The container can't be reached over SSH", "It runs, and no login was possible in time: no address, no route, or no SSH server.",
		"The message names the step that failed, and its remedy; the guide \"Reaching sandboxes\" has the ways to get there.", either(is(ErrNotReady), as[*guest.NotReady])},
	{"SBX502", "The SSH login was refused", "The SSH server answered, and took none of our keys.",
		"The template must carry the public half of `guest_ssh.private_key` for `guest_ssh.username`.", either(as[*guest.AuthRefused], is(guest.ErrNoKey))},
	{"SBX503", "The SSH host key changed", "Another key is shown than the pinned one. Nothing was sent.",
		"If you know why (a rollback or rebuild outside of this run), replace the container, or import it anew.", as[*guest.HostKeyChanged]},
	{"SBX504", "The jump host can't be used", "No sandbox behind it was tried.",
		"Check `guest_ssh.proxy_jump`; its sshd must allow TCP forwarding to the sandboxes (`AllowTcpForwarding`, `permitopen`).", as[*guest.JumpError]},
	{"SBX505", "Nobody knows how the command ended", "The connection was lost after it was sent. It was not sent again.",
		"Look at its effects, then run it once more if need be.", as[*guest.LostError]},
	{"SBX506", "The command was stopped", "Time ran out, or the run was interrupted, before it ended.", "Raise `timeout`.", as[*guest.CancelledError]},
	{"SBX507", "The template's clone is not fit for use", "A throwaway clone of a new template could not be logged in to, or had a host key or machine id of the template's own. Nothing of the build was kept.",
		"The message says what the clone lacked; the provisioner `sandbox-harden` and the builder's seal see to all of it.", is(ErrTemplateUnfit)},
	{CodeCommandFailed, "The command failed", "It ran in the container and ended with an exit code other than 0.",
		"The end of its output is in the message. The next apply runs it again; `on_failure = \"record\"` keeps the exit code instead.", never},

	// 6xx: runs of agents.
	{"SBX601", "The container can't supervise runs", "Its template lacks a program or a user that runs need, or the supervisor didn't start. Nothing was started.",
		"The message names what is missing; install it in the template.", is(ErrRunNeeds)},
	{"SBX602", "The container's disk is full", "What a run needs could not be written in the container. Nothing was started.", "Free space in it, or give it a larger `disk`.", is(ErrGuestFull)},
	{"SBX603", "The container keeps no files in memory", "Secrets are delivered onto tmpfs only, and the container has none. No secret was sent.",
		"Mount a tmpfs on `/run` in the template (systemd does), or run without secrets.", is(ErrNoTmpfs)},
	{"SBX604", "The agent isn't installed", "The run's user has no such command in the `PATH`. Nothing was started.",
		"The message names the agents that the template has; build one with the agent.", is(ErrNoAgent)},
	{"SBX605", "Two runs are the same", "Two resources of one apply ask for the same run in the same container. It was started once.",
		"Give each a `name` of its own.", is(ErrRunTwice)},
	{CodeRunFailed, "The run didn't succeed", "The agent or the tests ended with an exit code other than 0, or time ran out, and `on_failure` is `error`.",
		"The end of the output is in the message. The next apply starts a new attempt; `on_failure = \"record\"` keeps the result instead.", never},
	{"SBX611", "A program is missing", "The container, or this machine, has no such program (git, tar), and what was asked for needs it.", "Install it in the template, or on this machine; the message says which.", as[*workcopy.MissingTool]},
	{"SBX612", "The working folder isn't empty", "It holds files that no run put there, which bringing code in would remove.", "Name an empty or missing folder as `working_dir`.", is(workcopy.ErrOccupied)},
	{"SBX613", "The source folder isn't clean", "Its repository has changes that aren't committed, or a file isn't as it was sent. Nothing was applied.", "Commit or stash the changes; the run's own are in `patch_file`.", is(workcopy.ErrNotClean)},
	{"SBX614", "Git failed", "A clone, fetch or push did not work; git's own words are in the message.", "Check `repo.url`, `repo.ref` and `repo.credentials_wo`, and that the network mode lets the container reach the server.", is(workcopy.ErrGit)},
	{"SBX615", "Refused", "A path, link, kind, size or name isn't taken, because it could reach what it mustn't, or is over a limit.", "The message names it, and what may be instead.", is(workcopy.ErrRefused)},

	// 7xx: secrets and ports.
	{"SBX701", "The secrets can't be read", "A source is missing, can't be decrypted or parsed, or a name is missing or there twice. Values are never shown.",
		"The message names the source and the line or name.", as[*secrets.Error]},

	{"SBX702", "The node could not be told", "Port exposures are made on the node over SSH (`node_ssh`). It could not be reached, or it refused or failed to do what was asked.",
		"The message has what SSH, systemd or Tailscale said. Check `node_ssh` (`hosts`, key, user); a node is prepared by `examples/bootstrap` or by a login as root.", is(ErrNodeSSH)},
	{"SBX703", "The node can't be reached over SSH: `node_ssh` is missing", "Port exposures are made on the node itself, which the API can't do.",
		"Set `node_ssh` in the provider block.", is(ErrNoNodeSSH)},
	{"SBX704", "The node's port is taken", "Another exposure or another program listens there; the message names it.",
		"Choose another `host_port`, or leave it out to be given a free one.", is(ErrPortTaken)},

	{"SBX705", "The container could not join the tailnet", "Tailscale isn't installed in it, the key was refused or is used up, or the network mode lets nothing reach Tailscale.",
		"The message has what Tailscale said. Install `tailscale` in the template; use a fresh key; allow what it needs.", is(ErrTailnet)},

	// 8xx: the run. They come late: most failures above end a wait too.
	{"SBX801", "Time ran out", "The limit of the operation was reached.", "Raise the resource's `timeouts`; the next apply goes on from what is there.", is(context.DeadlineExceeded)},
	{"SBX802", "Interrupted", "The run was interrupted.", "The next apply goes on from what is there.", is(context.Canceled)},
	{"SBX803", "A task failed on the server", "The task ended with an error that has no code of its own.",
		"Its log is in the message, and in the web interface under the container's task history.", as[*pve.TaskError]},
	{CodeUnclassified, "No code of its own", "Everything else.", "The message says what happened. If it doesn't help, please report it with the output of `sandbox_diagnostics`.", never},
}
