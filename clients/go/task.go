package thole

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// Task is one activity to run.
type Task struct {
	Claim         string `json:"claim"` // names it in its session
	Activity      string `json:"activity"`
	Instance      string `json:"instance"`
	Execution     uint64 `json:"execution,string"`
	ActivityID    uint64 `json:"activityId,string"` // in the execution
	Try           uint32 `json:"tryNumber"`
	Attempt       uint32 `json:"attempt"` // how often this try has been claimed
	Input         []byte `json:"input"`
	Key           string `json:"key"` // idempotency key: the same for every try and every run of this activity
	Orchestration string `json:"orchestration"`
	Version       uint32 `json:"version"`
	Details       []byte `json:"details"`          // of the last heartbeat before this claim
	TimeoutMs     uint64 `json:"timeoutMs,string"` // until this try's deadline, when it was claimed; 0: it has none
	Queue         string `json:"queue"`
	Traceparent   string `json:"traceparent"` // W3C Trace Context of the start; empty: it had none
	Tracestate    string `json:"tracestate"`
	Token         string `json:"token"` // for Client.CompleteActivity, after ErrLater; empty: it must not be completed later

	*held
}

// held is what the worker knows of a task in hand.
type held struct {
	worker  *Worker
	log     *slog.Logger
	inHand  context.Context // until the outcome is stored or refused, or the claim is lost
	release context.CancelFunc
	ctx     context.Context // the handler's
	cancel  context.CancelCauseFunc
	beat    *outcome // the newest heartbeat, unless an answered renewal had it
	result  outcome  // when the handler has returned
	sent    bool     // the outcome may be stored, although no answer came
}

// Heartbeat tells that the task makes progress; the newest details are sent with the next renewal, and are Details if the
// task has to be run again. An error: details are too large.
func (t *Task) Heartbeat(details []byte) error {
	t.worker.mu.Lock()
	defer t.worker.mu.Unlock()
	if limit := t.worker.opened.DetailsMax; uint64(len(details)) > uint64(limit) {
		return &Error{Status: StatusLimit, Text: fmt.Sprintf("heartbeat details of %d bytes, the gateway takes %d", len(details), limit)}
	}
	t.beat = &outcome{Claim: t.Claim, Heartbeat: true, Details: slices.Clone(details)}
	return nil
}

// Failure is an error of a handler with a type that orchestrations can look at.
type Failure struct {
	Text  string `json:"text"`
	Type  string `json:"type,omitempty"`  // [A-Za-z0-9_.-]{0,64}
	Final bool   `json:"final,omitempty"` // no other try
}

func (f *Failure) Error() string { return f.Text }

// ErrLater is returned by a handler whose task is completed later, by who has its Token. Until then it has no lease, and only its
// timeout and the end of its instance end it, of which nobody is told.
var ErrLater = errors.New("thole: completed later")

// JSON makes a handler of one that takes and gives values. An input that is no JSON is a final failure of type bad_input.
func JSON[In, Out any](handle func(ctx context.Context, task *Task, in In) (Out, error)) Handler {
	return func(ctx context.Context, task *Task) ([]byte, error) {
		var in In
		if err := json.Unmarshal(task.Input, &in); err != nil {
			return nil, &Failure{Text: "the input cannot be read: " + err.Error(), Type: "bad_input", Final: true}
		}
		out, err := handle(ctx, task, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
}

// Cancelled is the cause of the end of a task's context.
type Cancelled struct {
	Kind   string        // requested, select_loser, explicit, ended, timeout, terminated, cancelled, lease_lost, shutdown
	Reason string        //
	Grace  time.Duration // that was left when the notice was sent
}

func (c *Cancelled) Error() string { return "cancelled: " + c.Kind + " " + c.Reason }

// run runs the handler, then has its outcome delivered in one session after the other. The slot is free when both have ended.
func (t *Task) run() {
	t.result = t.outcome(t.handle())
	for t.inHand.Err() == nil {
		select {
		case s := <-t.worker.sessions:
			s.complete(t)
		case <-t.inHand.Done():
		}
	}
	<-t.worker.slots
}

func (t *Task) handle() (output []byte, err error) {
	handler := t.worker.handlers[t.Activity]
	if handler == nil {
		return nil, &Failure{Text: "this worker has no activity " + t.Activity, Type: "unknown_activity"}
	}
	defer func() {
		if r := recover(); r != nil {
			t.log.Error("a handler panicked", "panic", r, "stack", string(debug.Stack()))
			err = &Failure{Text: fmt.Sprintf("panic: %v", r), Type: "panic"}
		}
	}()
	return handler(t.ctx, t)
}

// outcome says how the handler ended. After a notice each error but a Failure means that it ended because of it.
func (t *Task) outcome(output []byte, err error) outcome {
	t.worker.mu.Lock()
	payloadMax, result := t.worker.opened.PayloadMax, *cmp.Or(t.beat, &outcome{Claim: t.Claim})
	t.worker.mu.Unlock()
	if err == nil && uint64(len(output)) <= payloadMax {
		return outcome{Claim: t.Claim, Output: output}
	}
	if errors.Is(err, ErrLater) {
		if t.Token != "" {
			return outcome{Claim: t.Claim, Later: true}
		}
		err = &Failure{Text: "this task cannot be completed later: it has no token", Type: "no_token", Final: true}
	}
	var failure *Failure
	switch {
	case err == nil:
		failure = &Failure{fmt.Sprintf("the output has %d bytes, the gateway takes %d", len(output), payloadMax), "too_large", true}
	case errors.As(err, &failure):
	case t.ctx.Err() != nil:
		result.Cancelled = true
	default:
		failure = &Failure{Text: err.Error()}
	}
	if failure != nil {
		result.Failure = failure.valid()
	}
	return result
}

var notInTypes = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// valid is the failure as a gateway takes it.
func (f *Failure) valid() *Failure {
	text, kind := cmp.Or(f.Text, "failed"), notInTypes.ReplaceAllString(f.Type, "_")
	text = strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), 4096)], "\uFFFD"), "\x00", "\uFFFD")
	return &Failure{Text: text, Type: kind[:min(len(kind), 64)], Final: f.Final}
}
