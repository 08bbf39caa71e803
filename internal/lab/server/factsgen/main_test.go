package main

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// The lab refuses each parameter that its table doesn't have, of a wrong type or form, and each path: as long as the
// table is the real server's schema, no test can send what a real server would refuse on that account.
func TestTheLabsTableIsTheRealServersSchema(t *testing.T) {
	t.Parallel()
	traces := cmp.Or(os.Getenv("SANDBOX_TRACES"), filepath.Join("..", "..", "..", "..", "..", "shared", "pve", "traces"))
	schema := filepath.Join(filepath.Dir(filepath.Clean(traces)), "api-schema.json")
	want, err := generate(schema)
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no schema of a real server beside the recordings (%s)", schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join("..", "facts.json"))
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("facts.json is not what the schema says: go run ./internal/lab/server/factsgen -schema " + schema + " > internal/lab/server/facts.json")
	}
}
