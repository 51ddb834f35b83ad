package thole

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/nats-io/nats.go"
)

// Status says how a request ended. The numbers are the engine's.
type Status uint32

// Statuses that a gateway answers with.
const (
	StatusOK          Status = 0
	StatusInvalid     Status = 2
	StatusLimit       Status = 3
	StatusCancelled   Status = 6
	StatusApp         Status = 7
	StatusConflict    Status = 8
	StatusUnavailable Status = 9
	StatusNotFound    Status = 10
	StatusTimeout     Status = 11
	StatusDenied      Status = 13
	StatusFenced      Status = 14
)

// Error is what a gateway answered, or, with StatusUnavailable or StatusTimeout and a cause, that the context ended
// before there was a final answer.
type Error struct {
	Status Status
	Text   string
	cause  error
}

func (e *Error) Error() string {
	if e.cause != nil {
		return fmt.Sprintf("thole: %s (status %d): %v", e.Text, e.Status, e.cause)
	}
	return fmt.Sprintf("thole: %s (status %d)", e.Text, e.Status)
}

// Unwrap returns the context's error, if it ended the request.
func (e *Error) Unwrap() error { return e.cause }

// StatusOf returns the status of an error of this package; StatusOK for nil, StatusUnavailable for others.
func StatusOf(err error) Status {
	var e *Error
	switch {
	case err == nil:
		return StatusOK
	case errors.As(err, &e):
		return e.Status
	}
	return StatusUnavailable
}

var (
	errNoAnswer     = errors.New("no answer")
	errNoResponders = errors.New("no gateway answers on this subject")
	errBroken       = errors.New("the answer cannot be read")
)

const (
	pauseMin = 200 * time.Millisecond
	pauseMax = 5 * time.Second
)

// backoff makes pauses that double.
type backoff struct{ pause time.Duration }

func (b *backoff) reset() { b.pause = 0 }

func (b *backoff) next() time.Duration {
	b.pause = min(max(2*b.pause, pauseMin), pauseMax)
	return b.pause
}

// wait pauses, or returns false when the context, or another one, ends before.
func (b *backoff) wait(ctx context.Context, others ...context.Context) bool {
	return sleep(b.next(), ctx, others...)
}

func sleep(d time.Duration, ctx context.Context, others ...context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, other := range others {
		defer context.AfterFunc(other, cancel)()
	}
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// call makes one request. Without an error the answer's status is 0; an *Error has another one. Nothing is sent while
// there is no connection: what waits in the connection's buffer would arrive when nobody waits for its answer any more.
func call(ctx context.Context, nc *nats.Conn, subject string, timeout time.Duration, sender nats.Header, request ask) (*answer, error) {
	data, err := json.Marshal(request)
	if err != nil {
		return nil, &Error{Status: StatusInvalid, Text: err.Error()}
	}
	if !nc.IsConnected() {
		return nil, errNoAnswer
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	message := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{"Content-Type": {"application/json"}}}
	maps.Copy(message.Header, sender)
	reply, err := nc.RequestMsgWithContext(ctx, message)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, errNoResponders
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject):
		return nil, &Error{Status: StatusInvalid, Text: err.Error()}
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return read(reply.Data)
}

func read(data []byte) (*answer, error) {
	var a *answer // a pointer: null is no object
	if err := json.Unmarshal(data, &a); err != nil || a == nil {
		return nil, fmt.Errorf("%w: %.80q", errBroken, data)
	}
	if a.Status != StatusOK {
		return a, &Error{Status: a.Status, Text: a.Text}
	}
	return a, nil
}

var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// isName says whether a text is a name, as orchestrations, events, queries, queues and namespaces have.
func isName(text string) bool { return names.MatchString(text) }

// answered returns the status that a gateway gave, and whether there was an answer that could be read.
func answered(err error) (Status, bool) {
	var e *Error
	if errors.As(err, &e) {
		return e.Status, true
	}
	return StatusOK, err == nil
}

// unknown says whether the gateway does not know the session.
func unknown(err error) bool {
	status, ok := answered(err)
	return ok && status == StatusNotFound || errors.Is(err, errNoResponders)
}

// refused says whether the worker is in error: trying again would not help.
func refused(err error) bool {
	status, ok := answered(err)
	return ok && (status == StatusInvalid || status == StatusDenied)
}
