//go:build linux

package wire

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// maxMessage bounds a message's JSON; the longest are commands with their environment.
const maxMessage = 16 << 20

// maxFiles is how many open files one message may carry.
const maxFiles = 8

type request struct {
	Method string          `json:"method"`
	Args   json.RawMessage `json:"args,omitempty"`
}

type response struct {
	Fault  *Fault          `json:"fault,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// send writes a message: four bytes of length, with which the files travel, then JSON.
func send(c *net.UnixConn, message any, files []*os.File) error {
	body, err := json.Marshal(message)
	if err != nil {
		return err
	}
	packet := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(body)), uint32(len(body)))
	packet = append(packet, body...)
	var rights []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	n, _, err := c.WriteMsgUnix(packet, rights, nil)
	if err == nil && n < len(packet) {
		_, err = c.Write(packet[n:])
	}
	return err
}

// receive reads what send wrote. The caller closes the files, also those that come with an error.
func receive(c *net.UnixConn, message any) ([]*os.File, error) {
	head, rights := make([]byte, 4), make([]byte, unix.CmsgSpace(4*maxFiles))
	n, rn, _, _, err := c.ReadMsgUnix(head, rights)
	files := received(rights[:rn])
	if err == nil && n == 0 {
		err = io.EOF
	}
	if err == nil && n < len(head) {
		_, err = io.ReadFull(c, head[n:])
	}
	if err != nil {
		return files, err
	}
	size := binary.BigEndian.Uint32(head)
	if size > maxMessage {
		return files, fmt.Errorf("a message of %d bytes is too long", size)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(c, body); err != nil {
		return files, err
	}
	return files, json.Unmarshal(body, message)
}

func received(rights []byte) []*os.File {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil
	}
	var files []*os.File
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.CloseOnExec(fd)
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	return files
}

// Pair makes two connected sockets of a type (unix.SOCK_STREAM, unix.SOCK_SEQPACKET).
func Pair(kind int) (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("socket pair: %w", err)
	}
	near := os.NewFile(uintptr(fds[0]), "socket")
	theirs = os.NewFile(uintptr(fds[1]), "socket")
	ours, err = Conn(near)
	if err != nil {
		return nil, nil, errors.Join(err, theirs.Close())
	}
	return ours, theirs, nil
}

// Conn makes a connection of a socket that came as a file, and closes the file.
func Conn(f *os.File) (*net.UnixConn, error) {
	c, err := net.FileConn(f)
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("%T is no local socket", c), c.Close())
	}
	return u, nil
}
