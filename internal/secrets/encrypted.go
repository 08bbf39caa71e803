package secrets

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"filippo.io/age"
	"filippo.io/age/armor"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
)

// Age is a dotenv or JSON file that age (https://age-encryption.org) has encrypted, armored or not.
type Age struct {
	Path   string
	Format Format // of what is in it; empty: by the name without .age
	// Identity is the text of an identity file (AGE-SECRET-KEY-1…); IdentityFile is where one is. One of the two.
	Identity, IdentityFile string
}

// Name is the file's path.
func (a Age) Name() string { return "age file " + a.Path }

// Read decrypts and parses it.
func (a Age) Read(context.Context) (map[string]string, error) {
	identities, err := a.identities()
	if err != nil {
		return nil, err
	}
	encrypted, _, err := readFile(a.Path)
	if err != nil {
		return nil, err
	}
	var in io.Reader = bufio.NewReader(bytes.NewReader(encrypted))
	if bytes.HasPrefix(bytes.TrimSpace(encrypted), []byte(armor.Header)) {
		in = armor.NewReader(bytes.NewReader(bytes.TrimSpace(encrypted)))
	}
	plain, err := age.Decrypt(in, identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, errors.New("none of the identities can decrypt it: it was encrypted for others")
	}
	if err != nil {
		return nil, fmt.Errorf("it can't be decrypted: %w", err)
	}
	text, err := readAll(plain)
	if err != nil {
		return nil, fmt.Errorf("it can't be decrypted: %w", err)
	}
	return parse(text, a.Format, a.Path)
}

func (a Age) identities() ([]age.Identity, error) {
	text, from := []byte(a.Identity), "identity"
	if a.IdentityFile != "" {
		from = "identity file " + a.IdentityFile
		var err error
		if text, _, err = readFile(a.IdentityFile); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
	}
	found, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // the library's message may show a part of the line
		return nil, fmt.Errorf("%s holds no age identity (lines that begin with AGE-SECRET-KEY-1)", from)
	}
	return found, nil
}

// Sops is a file that sops (https://getsops.io) has encrypted. The command itself decrypts it, as it knows where each
// key is kept: age, PGP and the services of clouds.
type Sops struct {
	Path string
	// Command is the program; empty means "sops", looked up in PATH.
	Command string
}

// Name is the file's path.
func (s Sops) Name() string { return "sops file " + s.Path }

// ErrNoSops says that the sops command isn't installed.
var ErrNoSops = errors.New("the command sops is not installed here, or not in PATH")

// Read runs sops. What it writes to standard error goes into the error, without what looks like a secret.
func (s Sops) Read(ctx context.Context) (map[string]string, error) {
	program := s.Command
	if program == "" {
		program = "sops"
	}
	found, err := exec.LookPath(program)
	if err != nil {
		return nil, ErrNoSops
	}
	path, err := Expand(s.Path)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, found, "--decrypt", "--output-type", "json", path)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		said := strings.TrimSpace(redact.New().Text(complaints.String()))
		if len(said) > 2000 {
			said = said[:2000] + "…"
		}
		return nil, fmt.Errorf("sops could not decrypt it: %w: %s", err, said)
	}
	return parse(out.Bytes(), FormatJSON, s.Path)
}
