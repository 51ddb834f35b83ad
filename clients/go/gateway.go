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

func (e *Error) Error() string { return fmt.Sprintf("thole: %s (status %d)", e.Text, e.Status) }

// Unwrap returns the context's error, if it ended the request.
func (e *Error) Unwrap() error { return e.cause }

// StatusOf returns the status of an error of this package; StatusOK for nil, StatusUnavailable for others.
func StatusOf(err error) Status {
	var e *Error
	if errors.As(err, &e) {
		return e.Status
	} else if err == nil {
		return StatusOK
	}
	return StatusUnavailable
}

func invalid(format string, arguments ...any) *Error {
	return &Error{Status: StatusInvalid, Text: fmt.Sprintf(format, arguments...)}
}

// backoff makes pauses that double, from 200 ms to 5 s.
type backoff time.Duration

func (b *backoff) next() time.Duration {
	*b = min(max(2*(*b), backoff(200*time.Millisecond)), backoff(5*time.Second))
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
func call(ctx context.Context, nc *nats.Conn, subject string, timeout time.Duration, header nats.Header, request ask) *answer {
	data, _ := json.Marshal(request) // what it has can be written
	if !nc.IsConnected() {
		return unanswered("not connected")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	reply, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Data: data, Header: header})
	if errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrBadSubject) {
		return &answer{Status: StatusInvalid, Text: err.Error()}
	} else if err != nil {
		return unanswered(err.Error())
	}
	return read(reply.Data)
}

func read(data []byte) *answer {
	var a *answer // a pointer: null is no object
	if err := json.Unmarshal(data, &a); err != nil || a == nil {
		return unanswered(fmt.Sprintf("the answer cannot be read: %.80q", data))
	}
	return a
}

func unanswered(why string) *answer {
	return &answer{Status: StatusUnavailable, Text: why, unanswered: true}
}

// err is that of an answer whose status is not 0.
func (a *answer) err() error {
	if a.Status == StatusOK {
		return nil
	}
	return &Error{Status: a.Status, Text: a.Text}
}

var names = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkNames refuses what is no name, as orchestrations, events, queries, queues and namespaces have: they are parts of subjects.
func checkNames(texts ...string) error {
	for _, text := range texts {
		if !names.MatchString(text) {
			return invalid("%.80q is no name: [A-Za-z0-9_-]{1,64}", text)
		}
	}
	return nil
}

// ---- the messages of proto/gateway.proto in their JSON mapping: what a message does not have is left out, or zero ----

// ask is any request.
type ask struct {
	Worker     string     `json:"worker,omitempty"` // OpenSession
	Slots      int        `json:"slots,omitempty"`
	Activities []string   `json:"activities,omitempty"`
	Inbox      string     `json:"inbox,omitempty"`
	Host       string     `json:"host,omitempty"`
	Resume     string     `json:"resume,omitempty"`
	Claims     []string   `json:"claims,omitempty"`
	Max        int        `json:"max,omitempty"` // NextTasks; WaitMs: WaitInstance, too
	WaitMs     int64      `json:"waitMs,omitempty"`
	Running    []*outcome `json:"running,omitempty"`  // RenewTasks
	Outcomes   []outcome  `json:"outcomes,omitempty"` // CompleteTasks
	LimitMs    int64      `json:"limitMs,omitempty"`  // CloseSession
	Instance   string     `json:"instance,omitempty"` // a client's
	Input      []byte     `json:"input,omitempty"`
	Data       []byte     `json:"data,omitempty"`
	Reason     string     `json:"reason,omitempty"`
	RequestID  string     `json:"requestId,omitempty"`
	Version    uint32     `json:"version,omitempty"`
}

// answer is anything that a gateway sends, but for a task.
type answer struct {
	unanswered bool     // none came in time, or one that cannot be read
	Status     Status   `json:"status"`
	Text       string   `json:"text"`
	Session    string   `json:"session"` // SessionOpened
	Subject    string   `json:"subject"`
	LeaseMs    uint32   `json:"leaseMs"`
	RenewMs    uint32   `json:"renewMs"`
	GraceMs    uint32   `json:"graceMs"`
	PayloadMax uint64   `json:"payloadMax,string"`
	DetailsMax uint32   `json:"detailsMax"`
	Gateway    string   `json:"gateway"`
	Tasks      []*Task  `json:"tasks"`     // Tasks
	Cancelled  []answer `json:"cancelled"` // TasksRenewed
	Gone       []string `json:"gone"`      // of SessionOpened, too
	Results    []answer `json:"results"`   // TasksCompleted; of each outcome
	Claim      string   `json:"claim"`     // OutcomeResult, Notice
	Kind       string   `json:"kind"`
	Reason     string   `json:"reason"`
	Instance   string   `json:"instance"` // to a client
	State      string   `json:"state"`
	Output     []byte   `json:"output"`
	ErrorType  string   `json:"errorType"`
}

// outcome is also a RunningTask: it has no more than a heartbeat then.
type outcome struct {
	Claim     string   `json:"claim"`
	Output    []byte   `json:"output,omitempty"`
	Failure   *Failure `json:"failure,omitempty"`
	Cancelled bool     `json:"cancelled,omitempty"`
	Details   []byte   `json:"details,omitempty"`
	Heartbeat bool     `json:"heartbeat,omitempty"`
}

// size is about what its heartbeat takes in a message.
func (o *outcome) size() int { return len(o.Details)*4/3 + 64 }
