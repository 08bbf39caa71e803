package server

import (
	"errors"
	"fmt"
	"strings"
)

// apiError is an answer that isn't a success.
type apiError struct {
	status  int
	message string            // reason phrase, and body.message with a newline
	errors  map[string]string // body.errors of a 400
	bare    bool              // no newline in body.message, as a 501 has
	raw     *string           // the whole body, instead of the JSON one
}

func (e *apiError) Error() string { return e.message }

// failf is a 500 with the server's text: what most failures are, also "does not exist".
func failf(format string, args ...any) error {
	return &apiError{status: 500, message: fmt.Sprintf(format, args...)}
}

// paramError is a 400 "Parameter verification failed." about one parameter.
func paramError(name, format string, args ...any) error {
	return paramErrors(map[string]string{name: fmt.Sprintf(format, args...)})
}

// paramErrors is a 400 about several parameters.
func paramErrors(errs map[string]string) error {
	return &apiError{status: 400, message: "Parameter verification failed.", errors: errs}
}

// forbidden is a 403 "Permission check failed (what)"; without what, plain "Permission check failed".
func forbidden(what string) error {
	if what == "" {
		return &apiError{status: 403, message: "Permission check failed"}
	}
	return &apiError{status: 403, message: "Permission check failed (" + what + ")"}
}

// unauthorized is a 401 with an empty body, sent after Delays.AuthFailure.
func unauthorized(reason string) error {
	empty := ""
	return &apiError{status: 401, message: reason, raw: &empty}
}

// notImplemented is the 501 for an unknown path or method.
func notImplemented(method, path string) error {
	return &apiError{status: 501, message: fmt.Sprintf("Method '%s %s' not implemented", method, path), bare: true}
}

// asAPIError is err as an answer: what isn't one already is a 500.
func asAPIError(err error) *apiError {
	var known *apiError
	if errors.As(err, &known) {
		return known
	}
	return &apiError{status: 500, message: strings.TrimRight(err.Error(), "\n")}
}
