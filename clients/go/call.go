package thole

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// wait pauses, or returns false when the context ends before.
func (b *backoff) wait(ctx context.Context) bool { return sleep(ctx, b.next()) }

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// call makes one request. Without an error the answer's status is 0; an *Error has another one. Nothing is sent while
// there is no connection: what waits in the connection's buffer would arrive when nobody waits for its answer any more.
func call(ctx context.Context, nc *nats.Conn, subject string, timeout time.Duration, sender nats.Header, request, answer any) error {
	data, err := json.Marshal(request)
	if err != nil {
		return &Error{Status: StatusInvalid, Text: err.Error()}
	}
	if !nc.IsConnected() {
		return errNoAnswer
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	message := nats.NewMsg(subject)
	message.Data = data
	for name, values := range sender {
		message.Header[name] = values
	}
	message.Header.Set("Content-Type", "application/json")
	reply, err := nc.RequestMsgWithContext(ctx, message)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return errNoResponders
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject):
		return &Error{Status: StatusInvalid, Text: err.Error()}
	case err != nil:
		return fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	return read(reply.Data, answer)
}

func read(data []byte, answer any) error {
	var head *struct { // a pointer: null is no object
		Status Status `json:"status"`
		Text   string `json:"text"`
	}
	if err := json.Unmarshal(data, &head); err != nil || head == nil {
		return fmt.Errorf("%w: %.80q", errBroken, data)
	}
	if answer != nil {
		if err := json.Unmarshal(data, answer); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
	}
	if head.Status != StatusOK {
		return &Error{Status: head.Status, Text: head.Text}
	}
	return nil
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
