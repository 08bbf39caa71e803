package server

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// upid is a task's name: UPID:node:pid:pstart:starttime:type:id:user: with the numbers in hex.
type upid struct {
	node, typ, id, user string
	pid, pstart, start  int64
}

func (u upid) String() string {
	return fmt.Sprintf("UPID:%s:%08X:%08X:%08X:%s:%s:%s:", u.node, u.pid, u.pstart, u.start, u.typ, u.id, u.user)
}

var upidForm = regexp.MustCompile(`^UPID:([a-zA-Z0-9]([a-zA-Z0-9-]*[a-zA-Z0-9])?):([0-9A-Fa-f]{8}):([0-9A-Fa-f]{8,9}):([0-9A-Fa-f]{8}):([^:\s]+):([^:\s]*):([^:\s]+):$`)

// parseUPID reads a task's name; the error is the server's.
func parseUPID(text string) (upid, error) {
	m := upidForm.FindStringSubmatch(text)
	if m == nil {
		return upid{}, paramError("upid", "unable to parse worker upid")
	}
	hex := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 16, 64)
		return n
	}
	return upid{node: m[1], pid: hex(m[3]), pstart: hex(m[4]), start: hex(m[5]), typ: m[6], id: m[7], user: m[8]}, nil
}

// splitAuthID splits "admin@pve!ci" into user and token; the token is empty for a user.
func splitAuthID(authID string) (user, token string) {
	user, token, _ = strings.Cut(authID, "!")
	return user, token
}
