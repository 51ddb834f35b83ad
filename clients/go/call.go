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

	noAnswer Status = 1 << 31 // none in time, or one that cannot be read; in this package only
)

// Error is what a gateway answered, or, with StatusUnavailable or StatusTimeout and a cause, that the context ended
// before there was a final answer.
type Error struct {
	Status Status
	Text   string
	cause  error
}

func (e *Error) Error() string { return fmt.Sprintf("thole: %s (status %d)", e.Text, e.Status) }

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

const (
	pauseMin = 200 * time.Millisecond
	pauseMax = 5 * time.Second
)

// backoff makes pauses that double.
type backoff time.Duration

func (b *backoff) reset() { *b = 0 }

func (b *backoff) next() time.Duration {
	*b = min(max(2*(*b), backoff(pauseMin)), backoff(pauseMax))
	return time.Duration(*b)
}

// wait pauses; false: the context has ended.
func (b *backoff) wait(ctx context.Context) bool { return sleep(ctx, b.next()) }

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// call makes one request. Nothing is sent while there is no connection: what waits in the connection's buffer would arrive
// when nobody waits for its answer any more.
func call(ctx context.Context, nc *nats.Conn, subject string, timeout time.Duration, sender nats.Header, request ask) *answer {
	data, err := json.Marshal(request)
	if err != nil {
		return &answer{Status: StatusInvalid, Text: err.Error()}
	}
	if !nc.IsConnected() {
		return &answer{Status: noAnswer, Text: "not connected"}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	message := &nats.Msg{Subject: subject, Data: data, Header: nats.Header{"Content-Type": {"application/json"}}}
	maps.Copy(message.Header, sender)
	reply, err := nc.RequestMsgWithContext(ctx, message)
	switch {
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject):
		return &answer{Status: StatusInvalid, Text: err.Error()}
	case err != nil:
		return &answer{Status: noAnswer, Text: err.Error()}
	}
	return read(reply.Data)
}

func read(data []byte) *answer {
	var a *answer // a pointer: null is no object
	if err := json.Unmarshal(data, &a); err != nil || a == nil {
		return &answer{Status: noAnswer, Text: fmt.Sprintf("the answer cannot be read: %.80q", data)}
	}
	return a
}

// err is that of an answer whose status is not 0.
func (a *answer) err() error {
	switch a.Status {
	case StatusOK:
		return nil
	case noAnswer:
		return &Error{Status: StatusUnavailable, Text: a.Text}
	}
	return &Error{Status: a.Status, Text: a.Text}
}

var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkNames refuses what is no name, as orchestrations, events, queries, queues and namespaces have: they are parts of subjects.
func checkNames(texts ...string) error {
	for _, text := range texts {
		if !names.MatchString(text) {
			return &Error{Status: StatusInvalid, Text: fmt.Sprintf("%.80q is no name: [A-Za-z0-9_-]{1,64}", text)}
		}
	}
	return nil
}
