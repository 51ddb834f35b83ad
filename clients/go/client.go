package thole

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/user"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go"
)

const (
	tryWait     = 5 * time.Second // for one answer; then the request is repeated
	requestWait = 30 * time.Second
	waitMax     = 15 * time.Second
	waitLimit   = 10 * time.Minute
)

// Client starts and controls instances. What has no answer is repeated, with the same request id, until the context ends;
// a context without a deadline gets one of 30 s, that of Wait one of WaitLimit.
type Client struct {
	nc     *nats.Conn
	prefix string

	// Actor is who asks, at most 200 bytes of printable ASCII: recorded with what this client asks for. Default:
	// $THOLE_ACTOR, else USER@HOST.
	Actor string
	// VouchedActor is who asks, for a connection whose permissions give it that name: NATS vouches for it, and Actor does not count.
	// At most 200 bytes. Default: none.
	VouchedActor string
	// Name is the program with which, at most 64 bytes. Default: thole for Go.
	Name string
	// Trace, if it is set, adds the W3C Trace Context of a request, such as OpenTelemetry's
	// propagator.Inject(ctx, propagation.MapCarrier(carrier)).
	Trace func(ctx context.Context, carrier map[string]string)
	// Noted, if it is set, is called by Signal and Cancel when the instance's code does not run: why, and what would help.
	Noted func(instance, note string)
	// WaitLimit is how long Wait waits when its context has no deadline. Default: 10 minutes.
	WaitLimit time.Duration
}

var unprintable = regexp.MustCompile(`[^ -~]`)

func ownActor() string {
	host, _ := os.Hostname()
	who, err := user.Current()
	if err != nil {
		who = &user.User{}
	}
	own := unprintable.ReplaceAllString(fmt.Sprintf("%.100s@%.99s", who.Username, host), "?")
	return cmp.Or(os.Getenv("THOLE_ACTOR"), own)
}

// header says who asks.
func (c *Client) header(ctx context.Context) (nats.Header, error) {
	header := nats.Header{"Content-Type": {"application/json"}, "Thole-Actor": {c.Actor}, "Thole-Client": {c.Name}}
	carrier := map[string]string{}
	if c.Trace != nil {
		c.Trace(ctx, carrier)
	}
	for _, name := range []string{"traceparent", "tracestate"} {
		if carrier[name] != "" {
			header.Set(name, carrier[name])
		}
	}
	for name, values := range header {
		if len(c.Actor) > 200 || len(c.Name) > 64 || unprintable.MatchString(values[0]) {
			return nil, invalid("%s %.80q is no text of printable ASCII, or too long", name, values[0])
		}
	}
	return header, nil
}

// subject is that of an operation with a name, or without. If somebody is vouched for, it ends with who that is, encoded as ids are.
func (c *Client) subject(operation string, name []string) (string, error) {
	if err := checkNames(name...); err != nil {
		return "", err
	}
	subject := c.prefix + operation
	if len(name) > 0 {
		subject += "." + strings.Join(name, "~")
	}
	if c.VouchedActor == "" {
		return subject, nil
	}
	if len(c.VouchedActor) > 200 || !utf8.ValidString(c.VouchedActor) || strings.Contains(c.VouchedActor, "\x00") {
		return "", invalid("the vouched actor %.80q is no UTF-8 without NUL, or longer than 200 bytes", c.VouchedActor)
	}
	return subject + ".by." + strings.NewReplacer("+", "%20", ".", "%2E").Replace(url.QueryEscape(c.VouchedActor)), nil
}

// NewClient makes a client on a connection, which should reconnect for ever (nats.MaxReconnects(-1)).
func NewClient(nc *nats.Conn, namespace string) *Client {
	return &Client{nc: nc, prefix: "thole." + cmp.Or(namespace, "default") + ".gateway.client.", Actor: ownActor(), Name: "thole for Go",
		WaitLimit: waitLimit}
}

// StartOptions of an instance.
type StartOptions struct {
	Instance string // empty: a random id
	Version  uint32 // 0: the newest
	// RequireKnown: StatusNotFound, and nothing is started, when no engine knows the orchestration.
	RequireKnown bool
	// Event, if it is set, is delivered with EventData in any case, whether the instance is started now or was before: signal with start.
	Event     string
	EventData []byte
}

// Start starts an instance and returns its id when that is stored. StatusConflict: the id is in use by another start; with an event: by
// an instance that has ended.
func (c *Client) Start(ctx context.Context, orchestration string, input []byte, options StartOptions) (string, error) {
	request := ask{Instance: options.Instance, Input: input, RequestID: requestID(), Version: options.Version, Known: options.RequireKnown,
		EventData: options.EventData}
	operation, names := "start", []string{orchestration}
	if options.Event != "" {
		operation, names = "start_event", append(names, options.Event)
	}
	started, err := c.request(ctx, request, operation, names...)
	return started.Instance, err
}

// Signal sends an event to an instance. StatusConflict: it has ended.
func (c *Client) Signal(ctx context.Context, instance, event string, data []byte) error {
	return c.noted(ctx, ask{Instance: instance, Data: data, RequestID: requestID()}, "signal", event)
}

// Cancel asks an instance to end. StatusConflict: it has ended; StatusNotFound: there is none.
func (c *Client) Cancel(ctx context.Context, instance, reason string) error {
	return c.noted(ctx, ask{Instance: instance, Reason: reason, RequestID: requestID()}, "cancel")
}

// noted passes on what is said of an accepted request.
func (c *Client) noted(ctx context.Context, request ask, operation string, names ...string) error {
	told, err := c.request(ctx, request, operation, names...)
	if err == nil && told.Note != "" && c.Noted != nil {
		c.Noted(request.Instance, told.Note)
	}
	return err
}

// Terminate ends an instance without asking it. StatusConflict: it has ended; StatusNotFound: there is none.
func (c *Client) Terminate(ctx context.Context, instance, reason string) error {
	_, err := c.request(ctx, ask{Instance: instance, Reason: reason, RequestID: requestID()}, "terminate")
	return err
}

// Query asks an instance.
func (c *Client) Query(ctx context.Context, instance, query string, input []byte) ([]byte, error) {
	told, err := c.request(ctx, ask{Instance: instance, Input: input}, "query", query)
	return told.Output, err
}

// Describe says how an instance stands, and what keeps it from going on. StatusNotFound: there is none.
func (c *Client) Describe(ctx context.Context, instance string) (*Instance, error) {
	a, err := c.request(ctx, ask{Instance: instance}, "describe")
	if err != nil {
		return nil, err
	}
	found := cmp.Or(a.Info, &Instance{})
	found.Hindrances = a.Hindrances
	return found, nil
}

// List lists instances, newest first: one page. The next one is behind its last one (BehindInstance, BehindCreatedMs); an empty one is the end.
func (c *Client) List(ctx context.Context, options ListOptions) ([]Instance, error) {
	a, err := c.request(ctx, ask{ListOptions: &options}, "list")
	return a.Instances, err
}

// CompleteActivity completes a task whose handler has returned ErrLater, by its Token. Too late, or again, it changes nothing.
func (c *Client) CompleteActivity(ctx context.Context, token string, output []byte) error {
	_, err := c.request(ctx, ask{Token: token, Output: output}, "complete_activity")
	return err
}

// FailActivity fails such a task; its Final does not count.
func (c *Client) FailActivity(ctx context.Context, token string, failure Failure) error {
	_, err := c.request(ctx, ask{Token: token, Failure: &failure}, "complete_activity")
	return err
}

// Outcome says how an instance ended.
type Outcome struct {
	Status    Status // StatusOK: completed; StatusApp: failed; StatusCancelled
	State     string // completed, failed, cancelled, terminated
	Text      string // failure text, or reason
	ErrorType string // of a failure
	Output    []byte
}

// JSON reads the output.
func (o *Outcome) JSON(into any) error { return json.Unmarshal(o.Output, into) }

// Wait waits until an instance has ended, however it ended, or ctx ends: StatusTimeout, an Error that says how it stands, why, and what
// would help. StatusNotFound: there is none.
func (c *Client) Wait(ctx context.Context, instance string) (*Outcome, error) {
	a, err := c.request(ctx, ask{Instance: instance}, "wait")
	if a.State != "" && (a.Status == StatusOK || a.Status == StatusApp || a.Status == StatusCancelled) {
		return &Outcome{a.Status, a.State, a.Text, a.ErrorType, a.Output}, nil
	}
	return nil, err
}

// request repeats one until there is a final answer, or ctx ends. The answer is never nil.
func (c *Client) request(ctx context.Context, request ask, operation string, name ...string) (*answer, error) {
	subject, noSubject := c.subject(operation, name)
	header, noHeader := c.header(ctx)
	if err := cmp.Or(noSubject, noHeader); err != nil {
		return &answer{}, err
	}
	waits, limit := operation == "wait", requestWait
	if waits {
		limit = c.WaitLimit
	}
	if _, limited := ctx.Deadline(); !limited {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	deadline, _ := ctx.Deadline()
	last := &answer{} // that said how it stands
	for pause := backoff(0); ; {
		wait := time.Duration(0)
		if waits {
			left := time.Until(deadline)
			wait = max(min(waitMax, left-min(left/10, 300*time.Millisecond)), time.Millisecond) // its answer comes before the deadline
			request.WaitMs, request.Explain = wait.Milliseconds(), left <= waitMax
		}
		a := call(ctx, c.nc, subject, wait+tryWait, header, request)
		running := waits && a.Status == StatusTimeout
		late := waits && ctx.Err() != nil // the end of ctx came before that of the gateway's wait
		if running {
			pause, last = 0, a
		} else if a.Status != StatusUnavailable && (!waits || a.Status != StatusOK || a.State != "") {
			return a, a.err()
		}
		if !pause.wait(ctx) {
			e := &Error{Status: StatusUnavailable, Text: a.Text, cause: ctx.Err()}
			if running || late {
				e = &Error{StatusTimeout, cmp.Or(last.Text, a.Text), last.State, last.Reason, last.NextStep, ctx.Err()}
			}
			return &answer{}, e
		}
	}
}

// requestID makes one for all repetitions of one request.
func requestID() string {
	var random [16]byte
	_, _ = rand.Read(random[:])
	return fmt.Sprintf("%x", random)
}
