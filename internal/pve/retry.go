package pve

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	// firstRetry is the pause before the second attempt; it doubles up to
	// longestRetry, and half of it is random so that many clients spread out.
	firstRetry   = 200 * time.Millisecond
	longestRetry = 3 * time.Second
)

// temporaryStatus are answers that a later attempt may not get: too many
// requests, a proxy before the server, and one node not reaching the other.
var temporaryStatus = []int{429, 502, 503, 504, 595, 596, 597, 598, 599}

type singleAttemptKey struct{}

// singleAttempt returns a context whose calls aren't retried: the caller repeats
// them itself.
func singleAttempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, singleAttemptKey{}, true)
}

// send makes attempts until one has an answer to keep. A GET is repeated on
// connection errors and on answers that say "not now"; a write only when nothing
// of it can have left, for else it might be carried out twice.
func (t *transport) send(ctx context.Context, out outgoing) (*http.Response, error) {
	begin := t.cfg.Clock.Now()
	single := ctx.Value(singleAttemptKey{}) != nil
	for attempt := 1; ; attempt++ {
		started := t.cfg.Clock.Now()
		res, sent, err := t.once(ctx, out)
		t.logAttempt(ctx, out, attempt, t.cfg.Clock.Now().Sub(started), res, err)

		var again bool
		if err == nil {
			again = out.repeatable && slices.Contains(temporaryStatus, res.StatusCode)
		} else {
			again = (out.repeatable || !sent) && ctx.Err() == nil && passing(err)
		}
		pause := t.pause(attempt, res)
		if !again || single || t.cfg.Clock.Now().Sub(begin)+pause > t.cfg.RetryFor {
			return res, t.finalError(sent, attempt, err)
		}
		t.logRetry(ctx, out, attempt, pause)
		if cause := t.cfg.Clock.Sleep(ctx, pause); cause != nil {
			return nil, t.finalError(sent, attempt, cause)
		}
	}
}

func (t *transport) finalError(sent bool, attempts int, err error) error {
	if err == nil {
		return nil
	}
	return &callError{sent: sent, attempts: attempts, err: err}
}

// pause returns how long to wait after an attempt.
func (t *transport) pause(attempt int, res *http.Response) time.Duration {
	d := longestRetry
	if attempt < 5 {
		d = min(firstRetry<<(attempt-1), longestRetry)
	}
	d = d/2 + time.Duration(t.cfg.Jitter()*float64(d/2))
	if res != nil {
		if seconds, err := strconv.Atoi(res.Header.Get("Retry-After")); err == nil && seconds > 0 {
			d = max(d, time.Duration(seconds)*time.Second)
		}
	}
	return d
}

// passing reports whether an error of the connection may go away by itself. One
// about trust, about what listens there, or of a name that doesn't exist won't.
func passing(err error) bool {
	var trust *TLSError
	var permanent *permanentError
	var answer *Error
	var record tls.RecordHeaderError
	var dns *net.DNSError
	switch {
	case errors.As(err, &trust), errors.As(err, &permanent), errors.As(err, &answer), errors.As(err, &record):
		return false
	case errors.As(err, &dns):
		return !dns.IsNotFound
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errNoAnswerInTime):
		return true
	}
	return !errors.Is(err, context.Canceled)
}
