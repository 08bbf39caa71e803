// Package secrets reads secrets from where people keep them: the environment, dotenv and JSON files, age files and sops
// files. It knows neither Terraform nor Proxmox VE. An error never shows a value, nor the line that it stands in.
package secrets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// limit is how large a file of secrets may be, in bytes, before and after decryption: such a file is short, and another
// one was meant.
const limit = 1 << 20

// Format is how names and values stand in a text.
type Format string

// The formats.
const (
	FormatDotenv Format = "dotenv" // NAME=value lines
	FormatJSON   Format = "json"   // one object of texts, numbers and truth values
)

// FormatOf guesses a format by a file's name: .json, and everything else is dotenv. A trailing .age is left out.
func FormatOf(name string) Format {
	name = strings.TrimSuffix(strings.TrimSuffix(strings.ToLower(name), ".age"), ".asc")
	if filepath.Ext(name) == ".json" {
		return FormatJSON
	}
	return FormatDotenv
}

// Source is a place where secrets are.
type Source interface {
	// Name is the place in words, for messages.
	Name() string
	// Read returns names and values.
	Read(ctx context.Context) (map[string]string, error)
}

// Error says why secrets can't be read. Its text shows no value.
type Error struct{ Err error }

func (e *Error) Error() string { return e.Err.Error() }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Set are secrets by name.
type Set map[string]string

// name is what an environment can hold and a shell can read.
var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ValidName says whether a secret may have this name: that of an environment variable.
func ValidName(text string) bool { return name.MatchString(text) }

// Load reads sources together. The same name in two of them is an error that names both: which one counts would be
// found out too late. With only, those are taken and no others, and one that is missing is an error. An error is an *Error.
func Load(ctx context.Context, sources []Source, only []string) (Set, error) {
	set, err := load(ctx, sources, only)
	if err != nil {
		return nil, &Error{err}
	}
	return set, nil
}

func load(ctx context.Context, sources []Source, only []string) (Set, error) {
	all, from := Set{}, map[string]string{}
	for _, s := range sources {
		values, err := s.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name(), err)
		}
		for _, n := range slices.Sorted(maps.Keys(values)) {
			switch {
			case !ValidName(n):
				return nil, fmt.Errorf("%s: %q can't be the name of a secret: letters, digits and _ only, no digit first", s.Name(), n)
			case len(only) > 0 && !slices.Contains(only, n):
				continue
			case from[n] != "":
				return nil, fmt.Errorf("%s stands in %s and in %s: take one of them out", n, from[n], s.Name())
			case strings.ContainsRune(values[n], 0):
				return nil, fmt.Errorf("%s: %s holds a NUL byte, which no environment can", s.Name(), n)
			}
			all[n], from[n] = values[n], s.Name()
		}
	}
	for _, n := range only {
		if from[n] == "" {
			return nil, fmt.Errorf("%s is in none of the sources", n)
		}
	}
	return all, nil
}

// Names are the secrets' names, sorted.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s)) }

// Fingerprints tell one value from another without showing it: by name, 8 hexadecimal digits of a SHA-256 over name and
// value. They are short on purpose: a long one of a short secret could be tried out.
func (s Set) Fingerprints() map[string]string {
	out := make(map[string]string, len(s))
	for n, v := range s {
		out[n] = hex.EncodeToString(digest(n, v)[:4])
	}
	return out
}

// Version is a number that is another one when a name or a value is: for the version attributes beside write-only ones.
// It has 32 bits, as the fingerprints.
func (s Set) Version() int64 {
	parts := []string{"version"}
	for _, n := range s.Names() {
		parts = append(parts, n, hex.EncodeToString(digest(n, s[n])))
	}
	sum := digest(parts...)
	return int64(sum[0])<<24 | int64(sum[1])<<16 | int64(sum[2])<<8 | int64(sum[3])
}

func digest(parts ...string) []byte {
	sum := sha256.Sum256([]byte("sandbox secret\x00" + strings.Join(parts, "\x00")))
	return sum[:]
}

// Environment takes variables of this process by name.
type Environment struct {
	Variables []string
	Getenv    func(string) string // nil means os.Getenv
}

// Name is "the environment".
func (Environment) Name() string { return "the environment" }

// Read returns the variables; one that is unset or empty is an error, of all of them at once.
func (e Environment) Read(context.Context) (map[string]string, error) {
	get := e.Getenv
	if get == nil {
		get = os.Getenv
	}
	out, missing := map[string]string{}, []string(nil)
	for _, n := range e.Variables {
		if out[n] = get(n); out[n] == "" {
			missing = append(missing, n)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%s not set", strings.Join(missing, ", "))
	}
	return out, nil
}

// File is a dotenv or JSON file.
type File struct {
	Path   string
	Format Format // empty: by the name
	// Open is called with the file's mode, to warn of one that others can read; may be nil.
	Open func(mode fs.FileMode)
}

// Name is the file's path.
func (f File) Name() string { return "file " + f.Path }

// Read reads and parses it.
func (f File) Read(context.Context) (map[string]string, error) {
	text, mode, err := readFile(f.Path)
	if err != nil {
		return nil, err
	}
	if f.Open != nil {
		f.Open(mode)
	}
	return parse(text, f.Format, f.Path)
}

// ReadableByOthers says whether a mode lets other users read; never on Windows, whose permissions aren't in it.
func ReadableByOthers(mode fs.FileMode) bool {
	return runtime.GOOS != "windows" && mode.Perm()&0o077 != 0
}

func readFile(path string) ([]byte, fs.FileMode, error) {
	path, err := Expand(path)
	if err != nil {
		return nil, 0, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, reason(err)
	}
	defer func() { _ = f.Close() }() // only read
	info, err := f.Stat()
	if err != nil {
		return nil, 0, reason(err)
	}
	text, err := readAll(f)
	return text, info.Mode(), err
}

// Expand replaces a leading ~/ by the home folder.
func Expand(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, "~/")
	if !ok {
		return path, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("it begins with ~/, but there is no home folder: %w", err)
	}
	return filepath.Join(home, rest), nil
}

func readAll(r io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, reason(err)
	}
	if len(text) > limit {
		return nil, fmt.Errorf("it is larger than %d bytes", limit)
	}
	return text, nil
}

// reason leaves the path out, which the source's name says already.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
