package command

import (
	"bufio"
	"bytes"
	"crypto/md5"  //nolint:gosec // md5sum is what it is
	"crypto/sha1" //nolint:gosec // sha1sum too
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func init() {
	register(map[string]shell.Command{"cat": cat, "head": head, "tail": tail, "wc": wc, "tee": tee, "base64": base64Command,
		"sha256sum": checksum(sha256.New), "sha512sum": checksum(sha512.New), "sha1sum": checksum(sha1.New), "md5sum": checksum(md5.New),
		"od": od, "cmp": cmp, "dd": dd, "yes": yes})
}

// inputs calls f with each file, or with standard input where there is none.
func inputs(c *shell.Call, names []string, f func(name string, r io.Reader) int) int {
	if len(names) == 0 {
		names = []string{"-"}
	}
	return each(names, func(name string) int {
		if c.Err() != nil {
			return 1
		}
		if name != "-" {
			if in, err := c.Machine.FS.Stat(c.Cred, c.Path(name)); err == nil && in.IsDir() {
				return c.Fail("%s: Is a directory", name)
			}
		}
		h, err := c.Open(name, os.O_RDONLY, 0)
		if err != nil {
			return c.FailFile(name, err)
		}
		defer func() { _ = h.Close() }()
		return f(name, h)
	})
}

// copyOut copies to standard output; a reader that has gone ends the command as SIGPIPE would.
func copyOut(c *shell.Call, r io.Reader) int {
	if _, err := c.Copy(c.Stdout, r); err != nil && c.Err() == nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return 1
		}
		c.Process.Kill(machine.SIGPIPE)
	}
	return 0
}

func cat(c *shell.Call) int {
	f := parse(c, "nuAvEe")
	if f == nil {
		return 1
	}
	n := 0
	return inputs(c, f.args, func(_ string, r io.Reader) int {
		if !f.has("n") {
			return copyOut(c, r)
		}
		return lines(c, r, func(line string) bool {
			n++
			c.Out("%6d\t%s\n", n, line)
			return true
		})
	})
}

// lines calls f with each line, without its end, until f says stop.
func lines(c *shell.Call, r io.Reader, f func(string) bool) int {
	b := bufio.NewReader(r)
	for c.Err() == nil {
		line, err := b.ReadString('\n')
		if err != nil && line == "" {
			break
		}
		if !f(strings.TrimSuffix(line, "\n")) {
			break
		}
		if err != nil {
			break
		}
	}
	return 0
}

// countFlag reads -n 3, -c 5, and the old -3.
func countFlag(c *shell.Call, short string, long ...string) (f *flags, n int64, bytes, fromStart, ok bool) {
	if len(c.Argv) > 1 && len(c.Argv[1]) > 1 && c.Argv[1][0] == '-' {
		if _, err := strconv.Atoi(c.Argv[1][1:]); err == nil {
			c.Argv = append([]string{c.Argv[0], "-n", c.Argv[1][1:]}, c.Argv[2:]...)
		}
	}
	if f = parse(c, short, long...); f == nil {
		return nil, 0, false, false, false
	}
	n = 10
	v := f.value["n"]
	if f.has("c") {
		bytes, v = true, f.value["c"]
	}
	if v != "" {
		fromStart = strings.HasPrefix(v, "+")
		var err error
		if n, err = parseSize(strings.TrimPrefix(v, "+")); err != nil {
			c.Fail("invalid number: '%s'", v)
			return nil, 0, false, false, false
		}
	}
	return f, n, bytes, fromStart, true
}

func head(c *shell.Call) int {
	f, n, asBytes, _, ok := countFlag(c, "n:c:qv", "lines=n", "bytes=c", "quiet=q")
	if !ok {
		return 1
	}
	return inputs(c, f.args, func(name string, r io.Reader) int {
		if len(f.args) > 1 && !f.has("q") {
			c.Out("==> %s <==\n", name)
		}
		if asBytes {
			return copyOut(c, io.LimitReader(r, n))
		}
		left := n
		if left <= 0 {
			return 0
		}
		return lines(c, r, func(line string) bool {
			c.Out("%s\n", line)
			left--
			return left > 0
		})
	})
}

func tail(c *shell.Call) int {
	f, n, asBytes, fromStart, ok := countFlag(c, "n:c:fFqs:", "lines=n", "bytes=c", "follow=f", "quiet=q")
	if !ok {
		return 1
	}
	status := inputs(c, f.args, func(_ string, r io.Reader) int {
		all, err := io.ReadAll(r)
		if err != nil {
			return 1
		}
		switch {
		case asBytes && fromStart:
			all = all[min(int64(len(all)), max(0, n-1)):]
		case asBytes:
			all = all[max(0, int64(len(all))-n):]
		default:
			all = tailLines(all, n, fromStart)
		}
		return copyOut(c, bytes.NewReader(all))
	})
	if !f.has("f", "F") || len(f.args) != 1 {
		return status
	}
	return follow(c, f.args[0], status)
}

func tailLines(all []byte, n int64, fromStart bool) []byte {
	parts := bytes.SplitAfter(all, []byte("\n"))
	if len(parts) > 0 && len(parts[len(parts)-1]) == 0 {
		parts = parts[:len(parts)-1]
	}
	from := max(0, int64(len(parts))-n)
	if fromStart {
		from = min(int64(len(parts)), max(0, n-1))
	}
	return bytes.Join(parts[from:], nil)
}

// follow prints what is appended until it is killed.
func follow(c *shell.Call, name string, status int) int {
	h, err := c.Machine.FS.Open(c.Cred, c.Path(name), os.O_RDONLY, 0)
	if err != nil {
		return status
	}
	defer func() { _ = h.Close() }()
	if _, err := h.Seek(0, io.SeekEnd); err != nil {
		return 1
	}
	for c.Sleep(followEvery) {
		if s := copyOut(c, h); s != 0 {
			return s
		}
	}
	return status
}

func wc(c *shell.Call) int {
	f := parse(c, "lwcm", "lines=l", "words=w", "bytes=c", "chars=m")
	if f == nil {
		return 1
	}
	var total [3]int
	show := func(n [3]int, name string) {
		var cols []string
		for i, flag := range []string{"l", "w", "c"} {
			if f.has(flag) || flag == "c" && f.has("m") || !f.has("l", "w", "c", "m") {
				cols = append(cols, strconv.Itoa(n[i]))
			}
		}
		if len(cols) > 1 {
			for i := range cols {
				cols[i] = fmt.Sprintf("%7s", cols[i])
			}
		}
		if name != "-" {
			cols = append(cols, name)
		}
		c.Out("%s\n", strings.Join(cols, " "))
	}
	status := inputs(c, f.args, func(name string, r io.Reader) int {
		all, err := io.ReadAll(r)
		if err != nil {
			return 1
		}
		n := [3]int{bytes.Count(all, []byte("\n")), len(bytes.Fields(all)), len(all)}
		for i := range n {
			total[i] += n[i]
		}
		show(n, name)
		return 0
	})
	if len(f.args) > 1 {
		show(total, "total")
	}
	return status
}

func tee(c *shell.Call) int {
	f := parse(c, "ai", "append=a")
	if f == nil {
		return 1
	}
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if f.has("a") {
		flags = os.O_WRONLY | os.O_CREATE | os.O_APPEND
	}
	status := 0
	w := []io.Writer{c.Stdout}
	for _, name := range f.args {
		h, err := c.Open(name, flags, 0o666)
		if err != nil {
			status = c.FailFile(name, err)
			continue
		}
		defer func() { _ = h.Close() }()
		w = append(w, h)
	}
	if _, err := c.Copy(io.MultiWriter(w...), c.In); err != nil && c.Err() == nil {
		status = c.Fail("%s", message(err))
	}
	return status
}

func base64Command(c *shell.Call) int {
	f := parse(c, "dw:i", "decode=d", "wrap=w", "ignore-garbage=i")
	if f == nil {
		return 1
	}
	return inputs(c, f.args, func(_ string, r io.Reader) int {
		all, err := io.ReadAll(r)
		if err != nil {
			return 1
		}
		if f.has("d") {
			clean := strings.Map(func(r rune) rune {
				if r == '\n' || r == '\r' {
					return -1
				}
				return r
			}, string(all))
			out, err := base64.StdEncoding.DecodeString(clean)
			if s := copyOut(c, bytes.NewReader(out)); s != 0 {
				return s
			}
			if err != nil {
				return c.Fail("invalid input")
			}
			return 0
		}
		text, width := base64.StdEncoding.EncodeToString(all), 76
		if f.has("w") {
			width, _ = strconv.Atoi(f.value["w"])
		}
		if width == 0 {
			c.Out("%s", text)
			return 0
		}
		for ; len(text) > width; text = text[width:] {
			c.Out("%s\n", text[:width])
		}
		if text != "" {
			c.Out("%s\n", text)
		}
		return 0
	})
}

// checksum prints and checks digests.
func checksum(new func() hash.Hash) shell.Command {
	digest := func(c *shell.Call, r io.Reader) (string, error) {
		h := new()
		_, err := c.Copy(h, r)
		return hex.EncodeToString(h.Sum(nil)), err
	}
	return func(c *shell.Call) int {
		f := parse(c, "cb", "check=c", "status", "quiet", "binary=b")
		if f == nil {
			return 1
		}
		return inputs(c, f.args, func(name string, r io.Reader) int {
			if !f.has("c") {
				sum, err := digest(c, r)
				if err != nil {
					return 1
				}
				c.Out("%s  %s\n", sum, name)
				return 0
			}
			status := 0
			lines(c, r, func(line string) bool {
				want, file, ok := strings.Cut(line, " ")
				if !ok {
					return true
				}
				file = strings.TrimLeft(file, " *")
				result := "FAILED"
				if h, err := c.Open(file, os.O_RDONLY, 0); err != nil {
					c.FailFile(file, err)
				} else {
					if sum, err := digest(c, h); err == nil && strings.EqualFold(sum, want) {
						result = "OK"
					}
					_ = h.Close()
				}
				if result != "OK" {
					status = 1
				}
				if !f.has("status") && (result != "OK" || !f.has("quiet")) {
					c.Out("%s: %s\n", file, result)
				}
				return true
			})
			return status
		})
	}
}

// od prints bytes in hexadecimal or octal: -An, -tx1, -N.
func od(c *shell.Call) int {
	f := parse(c, "A:t:N:vj:")
	if f == nil {
		return 1
	}
	format := " %03o"
	if strings.HasPrefix(f.value["t"], "x1") {
		format = " %02x"
	}
	return inputs(c, f.args, func(_ string, r io.Reader) int {
		if n, err := strconv.ParseInt(f.value["N"], 10, 64); err == nil {
			r = io.LimitReader(r, n)
		}
		all, err := io.ReadAll(r)
		if err != nil {
			return 1
		}
		for i := 0; i < len(all); i += 16 {
			if f.value["A"] != "n" {
				c.Out("%07o", i)
			}
			for _, b := range all[i:min(len(all), i+16)] {
				c.Out(format, b)
			}
			c.Out("\n")
		}
		return 0
	})
}

func cmp(c *shell.Call) int {
	f := parse(c, "s", "quiet=s", "silent=s")
	if f == nil || !needOperand(c, f, 2) {
		return 2
	}
	var data [2][]byte
	for i, name := range f.args[:2] {
		h, err := c.Open(name, os.O_RDONLY, 0)
		if err != nil {
			c.FailFile(name, err)
			return 2
		}
		data[i], err = io.ReadAll(h)
		_ = h.Close()
		if err != nil {
			return 2
		}
	}
	if bytes.Equal(data[0], data[1]) {
		return 0
	}
	if !f.has("s") {
		i := 0
		for i < len(data[0]) && i < len(data[1]) && data[0][i] == data[1][i] {
			i++
		}
		c.Out("%s %s differ: byte %d, line %d\n", f.args[0], f.args[1], i+1, bytes.Count(data[0][:i], []byte("\n"))+1)
	}
	return 1
}

func dd(c *shell.Call) int {
	in, out, bs, count, skip, seek := "-", "-", int64(512), int64(-1), int64(0), int64(0)
	truncate, quiet := true, false
	for _, a := range c.Argv[1:] {
		k, v, _ := strings.Cut(a, "=")
		var err error
		switch k {
		case "if":
			in = v
		case "of":
			out = v
		case "bs", "ibs", "obs":
			bs, err = parseSize(v)
		case "count":
			count, err = parseSize(v)
		case "skip":
			skip, err = parseSize(v)
		case "seek":
			seek, err = parseSize(v)
		case "conv":
			truncate = !strings.Contains(v, "notrunc")
		case "status":
			quiet = v == "none"
		case "iflag", "oflag":
		default:
			return c.Fail("unrecognized operand '%s'", a)
		}
		if err != nil || bs <= 0 {
			return c.Fail("invalid number: '%s'", v)
		}
	}
	r, err := c.Open(in, os.O_RDONLY, 0)
	if err != nil {
		return c.Fail("failed to open '%s': %s", in, message(err))
	}
	defer func() { _ = r.Close() }()
	flags := os.O_WRONLY | os.O_CREATE
	if truncate && seek == 0 {
		flags |= os.O_TRUNC
	}
	w, err := c.Open(out, flags, 0o666)
	if err != nil {
		return c.Fail("failed to open '%s': %s", out, message(err))
	}
	defer func() { _ = w.Close() }()
	if skip > 0 {
		if _, err := io.CopyN(io.Discard, r, skip*bs); err != nil && !errors.Is(err, io.EOF) {
			return c.FailFile(in, err)
		}
	}
	if s, ok := w.(io.Seeker); ok && seek > 0 {
		if _, err := s.Seek(seek*bs, io.SeekStart); err != nil {
			return c.FailFile(out, err)
		}
	}
	var src io.Reader = r
	if count >= 0 {
		src = io.LimitReader(r, count*bs)
	}
	n, err := c.Copy(struct{ io.Writer }{w}, src)
	if !quiet {
		_, _ = fmt.Fprintf(c.Stderr, "%d+%d records in\n%d+%d records out\n%d bytes copied\n", n/bs, min(1, n%bs), n/bs, min(1, n%bs), n)
	}
	if err != nil && c.Err() == nil {
		return c.Fail("error writing '%s': %s", out, message(err))
	}
	return 0
}

func yes(c *shell.Call) int {
	text := strings.Join(c.Argv[1:], " ")
	if text == "" {
		text = "y"
	}
	for c.Err() == nil {
		c.Out("%s\n", text)
	}
	return 0
}
