package conformance

import (
	"regexp"
	"slices"
	"strings"
)

// kinds are values that differ from run to run; the order matters, the wider pattern first.
var kinds = []struct {
	name    string
	pattern *regexp.Regexp
}{
	{"UPID", regexp.MustCompile(`UPID:[^:\s]+:[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:([^:]*:[^:]*:[^:\s]*):`)},
	{"UUID", regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)},
	{"FINGERPRINT", regexp.MustCompile(`(?:[0-9A-F]{2}:){31}[0-9A-F]{2}`)},
	{"KEYPRINT", regexp.MustCompile(`SHA256:[A-Za-z0-9+/]{43}`)},
	{"LEASE", regexp.MustCompile(`\b10\.10\.10\.[12]\d\d\b`)}, // the recordings' static addresses are lower
	{"MAC", regexp.MustCompile(`(?i)\bbc:24:11(?::[0-9a-f]{2}){3}\b`)},
	{"LINKLOCAL", regexp.MustCompile(`fe80::be24:11ff:fe[0-9a-f]{2}:[0-9a-f]{1,4}`)},
	{"DIGEST", regexp.MustCompile(`\b[0-9a-f]{40}\b`)},
	{"TICKET", regexp.MustCompile(`PVE:([^:]+):[0-9A-F]{8}::\S+`)},
	{"CSRF", regexp.MustCompile(`^[0-9A-F]{8}:\S+$`)},
	{"TIME", regexp.MustCompile(`\d{4}[-_]\d{2}[-_]\d{2}[ T-]\d{2}[:_]\d{2}[:_]\d{2}`)},
}

// normal replaces what differs from run to run by its kind. A group of the pattern stays.
func normal(text string) string {
	for _, k := range kinds {
		text = k.pattern.ReplaceAllString(text, "<"+k.name+" $1>")
	}
	return text
}

// logNumbers are lines of task logs that report measurements.
var logNumbers = regexp.MustCompile(`^(Number of|Total |sent |total size|Literal data|Matched data|File list|Total bytes|total bytes|INFO: Total bytes|` +
	`INFO: archive file size|INFO: Finished Backup|INFO: Backup finished|INFO: prune|Filesystem|The filesystem on|Resizing the filesystem|Duplicate extents|extracting archive|` +
	`INFO: guest is online again after|<TIME > \d+ bytes \(.*\) copied, |<TIME > \d+\+\d+ records |<TIME > migration finished successfully)`)

var digits = regexp.MustCompile(`[0-9][0-9.,:]*`)

// fsUse is what a check of a file system counted; its size stays.
var fsUse = regexp.MustCompile(`\d+/(\d+) files \([\d.]+% non-contiguous\), \d+/(\d+) blocks`)

// normalLog is normal for a line of a task's log.
func normalLog(line string) string {
	line = fsUse.ReplaceAllString(normal(line), "N/$1 files, N/$2 blocks")
	if strings.HasPrefix(line, "INFO: starting new backup job:") { // its options come out of a hash
		options := strings.Split(line, " --")
		slices.Sort(options)
		line = strings.Join(options, " --")
	}
	if logNumbers.MatchString(line) {
		line = digits.ReplaceAllString(line, "N")
	}
	return line
}

// measured are keys whose values the recording node measured; they are compared by type.
var measured = keySet(`cpu mem disk netin netout uptime diskread diskwrite pid pstart starttime endtime time ctime snaptime
	used avail free available used_fraction loadavg idle wait kversion memhost saved
	pressurecpusome pressurecpufull pressureiosome pressureiofull pressurememorysome pressurememoryfull`)

// machine are keys under which a node's status describes the machine; as options of a container they are compared.
var machine = keySet("cpuinfo current-kernel memory rootfs swap ksm boot-info")

// sets are keys whose text is a list without an order.
var sets = keySet("content privs groups")

func keySet(text string) map[string]bool {
	out := map[string]bool{}
	for _, key := range strings.Fields(text) {
		out[key] = true
	}
	return out
}
