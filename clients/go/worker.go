// Package thole runs activities of thole, and starts and controls its instances, through a gateway: docs/gateway.md.
package thole

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// Options of a worker.
type Options struct {
	Namespace string // default: default
	Queue     string // default: default
	Name      string // [A-Za-z0-9_-]{1,64}; default: go-PID
	Slots     int    // tasks at a time; default: 10
	// CloseLimit is how long tasks may run on when Run's context ends; then they are cancelled with kind "shutdown".
	// Default: 30 s.
	CloseLimit time.Duration
	Logger     *slog.Logger // default: slog.Default()
}

// Handler runs one task. Its context has the try's deadline, and ends when the task is cancelled or its claim is lost; context.Cause is a *Cancelled
// then. An error makes the task fail (a *Failure with its type), or, after a cancellation, end as cancelled.
type Handler func(ctx context.Context, task *Task) ([]byte, error)

const (
	nextWait   = 10 * time.Second // of next: then it is asked again
	nextSpare  = 5 * time.Second  // before it counts as not answered
	answerWait = 5 * time.Second  // of open and renew; no more than a third of the lease
	storeWait  = 10 * time.Second // of complete
	closeSpare = 10 * time.Second // of close, more than its limit

	outcomeRefused = "outcome_refused" // type of the failure that a task has whose outcome the gateway cannot take
)

// Worker runs activities. Register them, then Run.
type Worker struct {
	nc       *nats.Conn
	options  Options
	log      *slog.Logger
	handlers map[string]Handler
	slots    chan struct{}   // that are taken: by tasks in hand, and by handlers that run on for lost ones
	sessions chan *session   // has the session for who has an outcome, while one is open
	run      context.Context // ends with the worker
	fatal    context.CancelCauseFunc
	stopBy   func() time.Time // when what still runs is to end, once the worker stops

	mu         sync.Mutex           // of what follows, and of heartbeats
	tasks      map[string]*Task     // in hand: until the outcome is stored or refused, or the claim is lost
	ended      map[string]time.Time // claims that were in hand: a task may come twice
	endSession context.CancelFunc   // of the newest one, which may not be open yet, or not any more
	opened     answer               // to the last open; its Session is empty once the lease is over
	lease      time.Duration        // that of the last open, which alone changes it
	leaseEnd   time.Time
	leaseTimer *time.Timer
}

// session is one with one gateway. When that does not answer, or does not go on, the session ends, and the next one takes
// its tasks over.
type session struct {
	*Worker
	ctx        context.Context // ends with it
	end        context.CancelFunc
	subject    string // its operations are below
	renewEvery time.Duration
	reconnects uint64       // of the connection when it was opened
	answers    atomic.Int32 // with status 0, that to open too
}

// NewWorker makes a worker on a connection, which should reconnect for ever (nats.MaxReconnects(-1)).
func NewWorker(nc *nats.Conn, options Options) *Worker {
	options.Namespace = cmp.Or(options.Namespace, "default")
	options.Queue = cmp.Or(options.Queue, "default")
	options.Name = cmp.Or(options.Name, fmt.Sprintf("go-%d", os.Getpid()))
	options.Slots = cmp.Or(max(options.Slots, 0), 10)
	options.CloseLimit = cmp.Or(max(options.CloseLimit, 0), 30*time.Second)
	return &Worker{nc: nc, options: options, log: cmp.Or(options.Logger, slog.Default()).With("worker", options.Name, "queue", options.Queue),
		handlers: map[string]Handler{}, slots: make(chan struct{}, options.Slots), sessions: make(chan *session),
		tasks: map[string]*Task{}, ended: map[string]time.Time{}, endSession: func() {}, lease: 3 * answerWait}
}

// Register adds an activity. Not while Run runs.
func (w *Worker) Register(activity string, handler Handler) { w.handlers[activity] = handler }

// Run works until ctx ends, then stops gracefully: no new tasks; those that run may end within CloseLimit. It returns nil
// then. Any other end is an error: the gateway refuses this worker, or the NATS connection is closed.
func (w *Worker) Run(ctx context.Context) error {
	if err := checkNames(w.options.Namespace, w.options.Queue, w.options.Name); err != nil {
		return err
	}
	w.run, w.fatal = context.WithCancelCause(context.WithoutCancel(ctx))
	w.stopBy = sync.OnceValue(func() time.Time { return time.Now().Add(w.options.CloseLimit) })
	w.leaseTimer = time.AfterFunc(time.Hour, func() { w.leaseOver() })
	defer w.leaseTimer.Stop()
	defer w.leaseOver()
	defer w.fatal(nil)
	for pause := backoff(0); w.run.Err() == nil; {
		w.mu.Lock()
		idle := len(w.tasks) == 0
		w.mu.Unlock()
		until := w.run // the worker is closed; when it holds nothing it may end at any time
		if idle {
			until = ctx
		}
		if until.Err() != nil {
			break
		}
		s := &session{Worker: w, subject: "thole." + w.options.Namespace + ".gateway", reconnects: w.nc.Stats().Reconnects}
		s.ctx, s.end = context.WithCancel(w.run)
		if s.open(until) {
			s.serve(ctx)
		}
		if s.answers.Load() > 1 {
			pause = 0 // the next one at once
		} else {
			pause.wait(until)
		}
	}
	if err := context.Cause(w.run); err != context.Canceled {
		return err
	}
	return nil
}

// open opens the session, which goes on with the tasks of the one before it unless the lease of that is over. False: it has ended.
func (s *session) open(until context.Context) bool {
	inbox, err := s.nc.Subscribe(s.nc.NewInbox(), s.noticeArrived) // its own: of a task that was moved the old gateway says that it is lost
	if err != nil {
		s.fatal(&Error{Status: StatusUnavailable, Text: "the NATS connection cannot be used: " + err.Error(), cause: err})
		return false
	}
	context.AfterFunc(s.ctx, func() { _ = inbox.Unsubscribe() })
	defer context.AfterFunc(until, s.end)()
	s.leaseOver()
	host, _ := os.Hostname()
	s.mu.Lock()
	s.endSession = s.end
	request := ask{Worker: s.options.Name, Slots: s.options.Slots, Activities: slices.Sorted(maps.Keys(s.handlers)), Inbox: inbox.Subject,
		Host: host[:min(len(host), 64)], Resume: s.opened.Session, Claims: slices.Collect(maps.Keys(s.tasks))}
	s.mu.Unlock()
	sent := time.Now()
	a := s.call(s.ctx, "open."+s.options.Queue, min(answerWait, s.lease/3), request)
	s.leaseOver()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || a.Status != StatusOK || a.Subject == "" || a.Session == "" || a.LeaseMs == 0 {
		if a.Status == StatusOK {
			s.log.Warn("no session: the answer to open comes too late, or has none")
		}
		s.end()
		return false
	}
	s.log.Info("session opened", "session", a.Session, "gateway", a.Gateway, "tasks", len(s.tasks))
	a.PayloadMax, a.DetailsMax = cmp.Or(a.PayloadMax, 256*1024), cmp.Or(a.DetailsMax, 16*1024)
	s.opened, s.subject = *a, a.Subject
	s.lease, s.renewEvery = time.Duration(a.LeaseMs)*time.Millisecond, time.Duration(a.RenewMs)*time.Millisecond
	if s.renewEvery <= 0 || s.renewEvery > s.lease/2 {
		s.renewEvery = s.lease / 3
	}
	s.renewed(sent, a)
	return true
}

// serve works in the session until it ends; it is closed when ctx ends.
func (s *session) serve(ctx context.Context) {
	go s.takeTasks(ctx)
	go s.renewals()
	defer context.AfterFunc(ctx, s.close)()
	for s.ctx.Err() == nil {
		select {
		case s.sessions <- s:
		case <-s.ctx.Done():
		}
	}
}

// call makes a request of the session, and ends the session if that has no answer or the gateway does not go on.
func (s *session) call(ctx context.Context, operation string, timeout time.Duration, request ask) *answer {
	if s.nc.Stats().Reconnects != s.reconnects { // answers may be lost
		s.end()
	}
	if s.leaseOver() || s.ctx.Err() != nil {
		return unanswered("the session has ended")
	}
	a := call(ctx, s.nc, s.subject+"."+operation, timeout, nats.Header{"Content-Type": {"application/json"}}, request)
	switch {
	case a.Status == StatusOK:
		s.answers.Add(1)
	case ctx.Err() != nil:
	case a.Status == StatusDenied || a.Status == StatusInvalid && operation != "complete": // there it is about the outcome
		s.fatal(fmt.Errorf("the gateway refuses %s: %w", operation, a.err()))
	default:
		s.log.Warn("not done", "operation", operation, "error", a.err())
		if a.unanswered || a.Status == StatusNotFound || a.Status == StatusUnavailable && operation == "next" {
			s.end()
		}
	}
	return a
}

// takeTasks asks for tasks until ctx or the session ends. An answer that comes after the end of ctx may still bring some.
func (s *session) takeTasks(ctx context.Context) {
	for pause := backoff(0); ctx.Err() == nil && s.ctx.Err() == nil; {
		select {
		case s.slots <- struct{}{}:
			<-s.slots // one is free
		case <-s.ctx.Done():
			return
		}
		a := s.call(s.ctx, "next", nextWait+nextSpare, ask{Max: cap(s.slots) - len(s.slots), WaitMs: nextWait.Milliseconds()})
		if a.Status != StatusOK {
			pause.wait(s.ctx)
			continue
		}
		pause = 0
		for _, task := range a.Tasks {
			s.begin(task)
		}
	}
}

// begin runs a task, unless its claim is known. Without a slot, or when the session has ended, it comes again.
func (s *session) begin(t *Task) {
	s.leaseOver()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || s.tasks[t.Claim] != nil || !s.ended[t.Claim].IsZero() || len(s.slots) == cap(s.slots) {
		return
	}
	s.slots <- struct{}{}
	t.held = &held{worker: s.Worker, log: s.log.With("activity", t.Activity, "instance", t.Instance)}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.inHand, t.release = context.WithCancel(context.Background())
	if t.TimeoutMs > 0 {
		ctx, stop := context.WithDeadlineCause(t.ctx, time.Now().Add(time.Duration(t.TimeoutMs)*time.Millisecond), &Cancelled{Kind: "timeout"})
		t.ctx = ctx
		context.AfterFunc(t.inHand, stop)
	}
	s.tasks[t.Claim] = t
	go t.run()
}

// complete delivers an outcome until it is answered, or the claim is lost, or the session ends: then the next one does.
func (s *session) complete(t *Task) {
	ctx, stop := context.WithCancel(t.inHand)
	defer stop()
	defer context.AfterFunc(s.ctx, stop)()
	for pause := backoff(0); ctx.Err() == nil; pause.wait(ctx) {
		again := t.sent
		t.sent = true
		a := s.call(ctx, "complete", storeWait, ask{Outcomes: []outcome{t.result}})
		r := a
		if a.Status == StatusOK && len(a.Results) == 1 {
			r = &a.Results[0]
		}
		switch {
		case r.Status == StatusInvalid:
			s.refused(t, r.Text)
			continue
		case r == a || r.Status == StatusUnavailable || r.Status == StatusTimeout:
			continue
		case r.Status == StatusFenced && again:
			t.log.Info("an outcome was sent before, and may be stored: its claim is gone")
		case r.Status != StatusOK:
			t.log.Warn("an outcome is refused", "status", r.Status, "text", r.Text)
		}
		s.mu.Lock()
		s.forget(t)
		s.mu.Unlock()
	}
}

// refused has a task fail whose outcome the gateway cannot take; if it cannot take that either, the worker ends.
func (s *session) refused(t *Task, why string) {
	err := invalid("the gateway cannot take an outcome: %s", why)
	t.log.Error("a failed try", "error", err)
	if told := t.result.Failure; told != nil && told.Type == outcomeRefused {
		s.fatal(err)
	}
	t.result = outcome{Claim: t.Claim, Failure: (&Failure{Text: err.Text, Type: outcomeRefused}).valid()}
}

// renewals go on until the session ends.
func (s *session) renewals() {
	var pause backoff
	for wait := s.renewEvery; sleep(s.ctx, wait); {
		s.mu.Lock()
		sent, timeout := time.Now(), min(answerWait, s.lease/3)
		running := s.running()
		s.mu.Unlock()
		a := s.call(s.ctx, "renew", timeout, ask{Running: running})
		if a.Status != StatusOK {
			wait = min(pause.next(), s.renewEvery)
			continue
		}
		pause, wait = 0, s.renewEvery-time.Since(sent)
		s.mu.Lock()
		if s.ctx.Err() == nil {
			s.renewed(sent, a)
			for _, entry := range running {
				if t := s.tasks[entry.Claim]; t != nil && t.beat == entry {
					t.beat = nil
				}
			}
		}
		s.mu.Unlock()
	}
}

// close closes the session, which holds nothing any more then, and ends the worker.
func (s *session) close() {
	for pause := backoff(0); s.ctx.Err() == nil; pause.wait(s.ctx) {
		limit := max(time.Until(s.stopBy()), 0).Round(time.Millisecond)
		if a := s.call(s.ctx, "close", limit+closeSpare, ask{LimitMs: limit.Milliseconds()}); a.Status == StatusOK {
			s.fatal(nil)
		}
	}
}

// ---- the lease ----

// renewed takes over an answer to what was sent then. Lock held.
func (w *Worker) renewed(sent time.Time, a *answer) {
	w.leaseEnd = sent.Add(w.lease)
	w.leaseTimer.Reset(time.Until(w.leaseEnd))
	for _, n := range a.Cancelled {
		w.notify(&n)
	}
	for _, claim := range a.Gone {
		if t := w.tasks[claim]; t != nil {
			w.drop(t, "its claim is gone")
		}
	}
	maps.DeleteFunc(w.ended, func(_ string, at time.Time) bool { return time.Since(at) > w.lease })
}

// leaseOver looks whether the lease is over, or the worker: then all is lost, the session ends, and the next one is a new one. The timer
// calls it, and whoever is about to go by the lease: the process may have been stopped for long, and the timer need not be what runs
// first then.
func (w *Worker) leaseOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	over := w.opened.Session != "" && (w.run.Err() != nil || !time.Now().Before(w.leaseEnd))
	if over {
		why := "no gateway answered for a lease"
		if w.run.Err() != nil {
			why = "the worker ends"
		}
		for _, t := range w.tasks {
			w.drop(t, why)
		}
		clear(w.ended)
		w.opened.Session = ""
		w.endSession()
	}
	return over
}

// ---- tasks in hand ----

// drop gives a claim up: its handler is to end, nothing is sent for it. Lock held.
func (w *Worker) drop(t *Task, why string) {
	t.log.Warn("a task is lost", "why", why)
	t.cancel(&Cancelled{Kind: "lease_lost"})
	w.forget(t)
}

// forget ends a task: its outcome is stored or refused, or it is lost. Lock held.
func (w *Worker) forget(t *Task) {
	t.release()
	if w.tasks[t.Claim] == t {
		delete(w.tasks, t.Claim)
		w.ended[t.Claim] = time.Now()
	}
}

func (s *session) noticeArrived(m *nats.Msg) {
	n := read(m.Data) // one that cannot be read names no claim
	notify := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.ctx.Err() == nil {
			s.notify(n)
		}
	}
	notify()
	time.AfterFunc(100*time.Millisecond, notify) // it may overtake its task by a moment
}

// notify ends a handler's context; the first notice counts. Lock held.
func (w *Worker) notify(n *answer) {
	if t := w.tasks[n.Claim]; t != nil {
		t.cancel(&Cancelled{Kind: n.Kind, Reason: n.Reason, Grace: time.Duration(n.GraceMs) * time.Millisecond})
	}
}

// running lists what is in hand with heartbeats, as many as one message takes; the others come next time. Lock held.
func (w *Worker) running() (running []*outcome) {
	room := int(w.nc.MaxPayload()) / 2
	left := room
	for claim, t := range w.tasks {
		entry := &outcome{Claim: claim}
		if t.beat != nil && (t.beat.size() <= left || left == room) {
			entry = t.beat
			left -= t.beat.size()
		}
		running = append(running, entry)
	}
	return running
}
