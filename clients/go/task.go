package thole

import (
	"context"
	"errors"
	"fmt"
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
	if uint64(len(details)) > h.session.payloadMax {
		return &Error{Status: StatusLimit, Text: "heartbeat details are larger than the gateway takes"}
	}
	h.session.mu.Lock()
	defer h.session.mu.Unlock()
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

// held is a claim that is in hand: until its outcome is stored or refused, or it is lost.
type held struct {
	session *session
	claim   string
	task    *Task
	ctx     context.Context // the handler's
	cancel  context.CancelCauseFunc
	sending context.Context // ends when nothing may be sent for it any more
	drop    context.CancelFunc
	told    bool   // that it is to end
	details []byte // of the newest heartbeat
	beat    uint64 // its number
	beaten  uint64 // the newest that was sent and answered
}

// run runs the handler and delivers its outcome.
func (h *held) run() {
	defer h.session.worker.release()
	output, err := h.handle()
	result := h.outcome(output, err)
	if h.sending.Err() == nil {
		h.session.complete(h, result)
	}
	h.session.forget(h)
}

func (h *held) handle() (output []byte, err error) {
	handler := h.session.worker.handlers[h.task.Activity]
	if handler == nil {
		return nil, &Failure{Text: "this worker has no activity " + h.task.Activity, Type: "unknown_activity"}
	}
	defer func() {
		if r := recover(); r != nil {
			h.session.log.Error("a handler panicked", "activity", h.task.Activity, "instance", h.task.Instance, "panic", r,
				"stack", string(debug.Stack()))
			err = &Failure{Text: fmt.Sprintf("panic: %v", r), Type: "panic"}
		}
	}()
	return handler(h.ctx, h.task)
}

const failureTextMax = 4096

// outcome says how the handler ended. After a notice each error but a Failure means that it ended because of it.
func (h *held) outcome(output []byte, err error) outcome {
	result := outcome{Claim: h.claim}
	var failure *Failure
	switch {
	case err == nil && uint64(len(output)) > h.session.payloadMax:
		result.Failure = &taskFailure{Text: fmt.Sprintf("the output has %d bytes, the gateway takes %d", len(output), h.session.payloadMax),
			Type: "too_large", Final: true}
	case err == nil:
		result.Output = output
	case errors.As(err, &failure):
		result.Failure = &taskFailure{Text: clipped(failure.Text), Type: typeName(failure.Type), Final: failure.Final}
	case context.Cause(h.ctx) != nil:
		result.Cancelled = true
	default:
		result.Failure = &taskFailure{Text: clipped(err.Error())}
	}
	if result.Failure != nil && result.Failure.Text == "" {
		result.Failure.Text = "failed"
	}
	return result
}

func clipped(text string) string {
	if len(text) > failureTextMax {
		text = text[:failureTextMax]
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func typeName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_.-", r) {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), 64)]
}
