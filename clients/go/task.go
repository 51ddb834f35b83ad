package thole

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
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

	held *held
}

// Heartbeat tells that the task makes progress; the newest details are sent with the next renewal, and are Details if the
// task has to be run again. An error: details are too large.
func (t *Task) Heartbeat(details []byte) error {
	h := t.held
	h.worker.mu.Lock()
	defer h.worker.mu.Unlock()
	if uint64(len(details)) > uint64(h.worker.detailsMax) {
		return &Error{Status: StatusLimit, Text: fmt.Sprintf("heartbeat details of %d bytes, the gateway takes %d", len(details), h.worker.detailsMax)}
	}
	h.details = append([]byte(nil), details...)
	h.beat++
	return nil
}

// Failure is an error of a handler with a type that orchestrations can look at.
type Failure struct {
	Text  string
	Type  string // [A-Za-z0-9_.-]{0,64}
	Final bool   // no other try
}

func (f *Failure) Error() string { return f.Text }

// Cancelled is the cause of the end of a task's context.
type Cancelled struct {
	Kind   string        // requested, select_loser, explicit, ended, timeout, terminated, cancelled, lease_lost, shutdown
	Reason string        //
	Grace  time.Duration // that was left when the notice was sent
}

func (c *Cancelled) Error() string { return "cancelled: " + c.Kind + " " + c.Reason }

// held is a task in hand.
type held struct {
	worker  *Worker
	task    *Task
	ctx     context.Context // the handler's
	cancel  context.CancelCauseFunc
	result  *outcome // when the handler has returned
	stop    func()   // what delivers it
	details []byte   // of the newest heartbeat
	beat    uint64   // its number
	beaten  uint64   // the newest that was sent and answered
	sent    bool     // the outcome may be stored, although no answer came
}

// run runs the handler, then has its outcome delivered, or frees the slot of a task that was lost.
func (h *held) run() {
	result := h.outcome(h.handle())
	w := h.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	h.result = &result
	if w.tasks[h.task.Claim] != h {
		w.slots <- struct{}{}
	} else if w.session.subject != "" { // else the session does that once it is open
		w.session.complete(h)
	}
}

func (h *held) handle() (output []byte, err error) {
	handler := h.worker.handlers[h.task.Activity]
	if handler == nil {
		return nil, &Failure{Text: "this worker has no activity " + h.task.Activity, Type: "unknown_activity"}
	}
	defer func() {
		if r := recover(); r != nil {
			h.worker.log.Error("a handler panicked", "activity", h.task.Activity, "instance", h.task.Instance, "panic", r,
				"stack", string(debug.Stack()))
			err = &Failure{Text: fmt.Sprintf("panic: %v", r), Type: "panic"}
		}
	}()
	return handler(h.ctx, h.task)
}

var notInTypes = regexp.MustCompile(`[^A-Za-z0-9_.-]`)

// outcome says how the handler ended. After a notice each error but a Failure means that it ended because of it.
func (h *held) outcome(output []byte, err error) outcome {
	result := outcome{Claim: h.task.Claim}
	h.worker.mu.Lock()
	payloadMax, beat, details := h.worker.payloadMax, h.beat != h.beaten, h.details
	h.worker.mu.Unlock()
	var failure *Failure
	switch {
	case err == nil && uint64(len(output)) <= payloadMax:
		result.Output = output
		return result
	case err == nil:
		failure = &Failure{fmt.Sprintf("the output has %d bytes, the gateway takes %d", len(output), payloadMax), "too_large", true}
	case errors.As(err, &failure):
	case context.Cause(h.ctx) != nil:
		result.Cancelled = true
	default:
		failure = &Failure{Text: err.Error()}
	}
	if failure != nil {
		result.Failure = taskFailureOf(failure)
	}
	if beat {
		result.Heartbeat, result.Details = true, details
	}
	return result
}

func taskFailureOf(failure *Failure) *taskFailure {
	text, kind := cmp.Or(failure.Text, "failed"), notInTypes.ReplaceAllString(failure.Type, "_")
	text = strings.ReplaceAll(strings.ToValidUTF8(text[:min(len(text), 4096)], "\uFFFD"), "\x00", "\uFFFD")
	return &taskFailure{Text: text, Type: kind[:min(len(kind), 64)], Final: failure.Final}
}
