package engine

import (
	"errors"
	"fmt"
)

// What engines say when they refuse. Test with errors.Is; the message names the object.
var (
	ErrNotFound   = errors.New("does not exist")
	ErrExists     = errors.New("already exists")
	ErrRunning    = errors.New("is running")
	ErrNotRunning = errors.New("is not running")
	ErrInUse      = errors.New("is in use")
	ErrInvalid    = errors.New("is not valid")
	ErrNoSpace    = errors.New("has no space left")
	ErrClosed     = errors.New("is closed")
)

// Refuse makes the error for an object: "guest 101: is running".
func Refuse(object string, why error) error { return fmt.Errorf("%s: %w", object, why) }

// Guest names a guest in an error.
func Guest(id int) string { return fmt.Sprintf("guest %d", id) }
