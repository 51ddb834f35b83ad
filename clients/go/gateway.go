package thole

import (
	"cmp"
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
	Status   Status
	Text     string
	State    string // of the instance that Wait has waited for in vain: as in Instance
	Reason   string // why it does not go on, if it is known
	NextStep string // what would help
	cause    error
}

func (e *Error) Error() string {
	if e.State != "" {
		return fmt.Sprintf("thole: the instance is %s: %s (status %d); try: %s", e.State, e.Text, e.Status, cmp.Or(e.NextStep, "wait longer"))
	}
	return fmt.Sprintf("thole: %s (status %d)", e.Text, e.Status)
}

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
	EventData  []byte     `json:"eventData,omitempty"`
	Known      bool       `json:"requireKnown,omitempty"`
	Explain    bool       `json:"explain,omitempty"`
	Token      string     `json:"token,omitempty"` // CompleteActivity
	Output     []byte     `json:"output,omitempty"`
	Failure    *Failure   `json:"failure,omitempty"`
	*ListOptions
}

// ListOptions select instances; what is empty or 0 selects all.
type ListOptions struct {
	States          []string `json:"states,omitempty"` // as in Instance
	Orchestration   string   `json:"orchestration,omitempty"`
	IDPrefix        string   `json:"idPrefix,omitempty"`
	Parent          string   `json:"parent,omitempty"`
	CustomStatus    string   `json:"customStatus,omitempty"`
	CreatedAfterMs  uint64   `json:"createdAfterMs,string,omitempty"` // inclusive; since 1970
	CreatedBeforeMs uint64   `json:"createdBeforeMs,string,omitempty"`
	Limit           uint32   `json:"limit,omitempty"` // at most 1000; 0: 100. There may be fewer, although there are more
	BehindInstance  string   `json:"behindInstance,omitempty"`
	BehindCreatedMs uint64   `json:"behindCreatedMs,string,omitempty"`
}

// Instance is what is known of an instance.
type Instance struct {
	ID             string      `json:"instance"`
	Orchestration  string      `json:"orchestration"`
	Version        uint32      `json:"version"` // 0: not chosen yet
	Execution      uint64      `json:"execution,string"`
	State          string      `json:"state"`  // pending, running, waiting, stuck, paused, completed, failed, cancelled, terminated
	Reason         string      `json:"reason"` // why it does not go on: no_code, divergence, paused, …
	Detail         string      `json:"detail"` // the same for people; of a failure the head of its text
	CustomStatus   string      `json:"customStatus"`
	Parent         string      `json:"parent"`
	CreatedMs      uint64      `json:"createdMs,string"`
	UpdatedMs      uint64      `json:"updatedMs,string"`
	Turns          uint64      `json:"turns,string"`
	OpenActivities uint64      `json:"openActivities,string"`
	OpenTimers     uint64      `json:"openTimers,string"`
	Hindrances     []Hindrance `json:"-"` // of Describe: what keeps it from going on; none: it goes on, waits for time or an event, or has ended
}

// Hindrance is what keeps an instance from going on, until somebody does something.
type Hindrance struct {
	Kind     string `json:"kind"` // a reason; or no_engine, not_taken, no_worker, unknown_activity, quarantined, child
	Text     string `json:"text"`
	NextStep string `json:"nextStep"` // what would let it go on
}

// answer is anything that a gateway sends, but for a task.
type answer struct {
	unanswered bool        // none came in time, or one that cannot be read
	Status     Status      `json:"status"`
	Text       string      `json:"text"`
	Session    string      `json:"session"` // SessionOpened
	Subject    string      `json:"subject"`
	LeaseMs    uint32      `json:"leaseMs"`
	RenewMs    uint32      `json:"renewMs"`
	GraceMs    uint32      `json:"graceMs"`
	PayloadMax uint64      `json:"payloadMax,string"`
	DetailsMax uint32      `json:"detailsMax"`
	Gateway    string      `json:"gateway"`
	Tasks      []*Task     `json:"tasks"`     // Tasks
	Cancelled  []answer    `json:"cancelled"` // TasksRenewed
	Gone       []string    `json:"gone"`      // of SessionOpened, too
	Results    []answer    `json:"results"`   // TasksCompleted; of each outcome
	Claim      string      `json:"claim"`     // OutcomeResult, Notice
	Kind       string      `json:"kind"`
	Reason     string      `json:"reason"`
	Instance   string      `json:"instance"` // to a client
	State      string      `json:"state"`
	Output     []byte      `json:"output"`
	ErrorType  string      `json:"errorType"`
	NextStep   string      `json:"nextStep"`
	Note       string      `json:"note"`
	Info       *Instance   `json:"info"`
	Hindrances []Hindrance `json:"hindrances"`
	Instances  []Instance  `json:"instances"`
}

// outcome is also a RunningTask: it has no more than a heartbeat then.
type outcome struct {
	Claim     string   `json:"claim"`
	Output    []byte   `json:"output,omitempty"`
	Failure   *Failure `json:"failure,omitempty"`
	Cancelled bool     `json:"cancelled,omitempty"`
	Details   []byte   `json:"details,omitempty"`
	Heartbeat bool     `json:"heartbeat,omitempty"`
	Later     bool     `json:"later,omitempty"`
}

// size is about what its heartbeat takes in a message.
func (o *outcome) size() int { return len(o.Details)*4/3 + 64 }
