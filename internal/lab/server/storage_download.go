package server

import (
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// downloadURL is a download by the node into a storage. A lab reaches nothing outside: only addresses of this machine
// answer, for others the task fails to connect.
func (s *Server) downloadURL(c *call) (any, error) {
	st, err := s.storageOn(c.node.Name, c.params.str("storage"))
	if err != nil {
		return nil, err
	}
	content, name, address := c.params.str("content"), c.params.str("filename"), c.params.str("url")
	if !slices.Contains(st.Content, content) {
		return nil, failf("storage '%s' is not configured for content-type '%s'", st.ID, content)
	}
	format, err := s.checkFileName(content, name)
	if err != nil {
		return nil, err
	}
	algorithm, want := c.params.str("checksum-algorithm"), strings.ToLower(c.params.str("checksum"))
	return c.startTask("download", name, func(t *task) error {
		volid := fmt.Sprintf("%s:%s/%s", st.ID, content, name)
		t.logf("downloading %s to %s", address, path.Join("/var/lib/vz/template/cache", name))
		if !loopback(address) {
			return fmt.Errorf("download failed: can't connect to %s: Connection refused", hostOf(address))
		}
		var size int64
		var got string
		var err error
		s.unlocked(func() { size, got, err = fetch(t.ctx, address, algorithm) })
		if err != nil {
			return fmt.Errorf("download failed: %w", err)
		}
		if algorithm != "" {
			t.logf("calculating checksum...")
			if got != want {
				return fmt.Errorf("checksum mismatch: got '%s' != expect '%s'", got, want)
			}
			t.logf("OK, checksum verified")
		}
		s.st.Volumes[volumeKey(c.node.Name, volid)] = &volume{
			VolID: volid, Node: c.node.Name, Content: content, Format: format, Size: size, Used: size, CTime: s.now().Unix(),
		}
		s.dirty()
		t.logf("download of '%s' to '%s' finished", address, path.Join("/var/lib/vz/template/cache", name))
		return nil
	})
}

// loopback says whether an address is on this machine.
func loopback(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback() || u.Hostname() == "localhost"
}

// fetchLimit bounds a download in bytes and time.
const (
	fetchLimit   = 1 << 30
	fetchTimeout = 5 * time.Minute
)

// fetch gets a file and its sum. Its content isn't kept: a lab unpacks images of its own.
func fetch(ctx context.Context, address, algorithm string) (size int64, sum string, err error) {
	var h hash.Hash
	switch algorithm {
	case "", "sha256":
		h = sha256.New()
	case "sha384":
		h = sha512.New384()
	case "sha512":
		h = sha512.New()
	default:
		return 0, "", fmt.Errorf("the lab knows no checksum %s", algorithm)
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0, "", err
	}
	answer, err := (&http.Client{Transport: &http.Transport{Proxy: nil}}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return 0, "", errors.New(answer.Status)
	}
	size, err = io.Copy(h, io.LimitReader(answer.Body, fetchLimit))
	return size, hex.EncodeToString(h.Sum(nil)), err
}
