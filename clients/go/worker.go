// Package thole runs activities of thole, and starts and controls its instances, through a gateway: docs/gateway.md.
package thole

import (
	"cmp"
	"context"
	"encoding/json"
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

// Handler runs one task. Its context ends when the task is cancelled or its claim is lost; context.Cause is a *Cancelled
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
	slots    chan struct{} // that are free; one is taken by a task in hand, and by a handler that runs on for a lost one
	fatal    context.CancelCauseFunc
	stopBy   time.Time // when what still runs is to end, once the worker stops

	mu         sync.Mutex
	tasks      map[string]*held     // in hand: until the outcome is stored or refused, or the claim is lost
	ended      map[string]time.Time // claims that were in hand: a task may come twice
	session    *session             // the newest one, which may not be open yet, or not any more
	resume     string               // the last one that was opened, until its lease is over
	lease      time.Duration
	leaseEnd   time.Time
	leaseTimer *time.Timer
	payloadMax uint64
	detailsMax uint32
}

// session is one with one gateway. When that does not answer, or does not go on, the session ends, and the next one takes
// its tasks over.
type session struct {
	*Worker
	ctx        context.Context // ends with it
	end        context.CancelFunc
	subject    string // empty: it is not open yet
	renewEvery time.Duration
	reconnects uint64      // of the connection when it was opened
	used       atomic.Bool // an operation has been answered
}

// NewWorker makes a worker on a connection, which should reconnect for ever (nats.MaxReconnects(-1)).
func NewWorker(nc *nats.Conn, options Options) *Worker {
	options.Namespace = cmp.Or(options.Namespace, "default")
	options.Queue = cmp.Or(options.Queue, "default")
	options.Name = cmp.Or(options.Name, fmt.Sprintf("go-%d", os.Getpid()))
	options.Slots = cmp.Or(max(options.Slots, 0), 10)
	options.CloseLimit = cmp.Or(max(options.CloseLimit, 0), 30*time.Second)
	log := cmp.Or(options.Logger, slog.Default()).With("worker", options.Name, "queue", options.Queue)
	w := &Worker{nc: nc, options: options, log: log, handlers: map[string]Handler{}, slots: make(chan struct{}, options.Slots),
		tasks: map[string]*held{}, ended: map[string]time.Time{}}
	for range options.Slots {
		w.slots <- struct{}{}
	}
	return w
}

// Register adds an activity. Not while Run runs.
func (w *Worker) Register(activity string, handler Handler) { w.handlers[activity] = handler }

// Run works until ctx ends, then stops gracefully: no new tasks; those that run may end within CloseLimit. It returns nil
// then. Any other end is an error: the gateway refuses this worker, or the NATS connection is closed.
func (w *Worker) Run(ctx context.Context) error {
	if err := checkNames(w.options.Namespace, w.options.Queue, w.options.Name); err != nil {
		return err
	}
	run, fatal := context.WithCancelCause(context.WithoutCancel(ctx))
	w.fatal = fatal
	defer fatal(nil)
	w.leaseTimer = time.AfterFunc(time.Hour, func() { w.leaseOver() })
	defer w.lose("the worker ends")
	var pause backoff
	for run.Err() == nil {
		if w.nc.IsClosed() {
			return &Error{Status: StatusUnavailable, Text: "the NATS connection is closed", cause: nats.ErrConnectionClosed}
		}
		until := run // the worker is closed; when it holds nothing it may end at any time
		if w.inHand() == 0 {
			until = ctx
		}
		if until.Err() != nil {
			break
		}
		s, err := w.open(until, run)
		if err == nil && s.serve(ctx) {
			break
		} else if refused(StatusOf(err)) {
			return fmt.Errorf("the gateway refuses to open a session: %w", err)
		} else if err != nil {
			w.log.Warn("no session", "error", err)
		}
		if s.used.Load() {
			pause = 0
			continue // at once
		}
		pause.wait(until)
	}
	return context.Cause(run)
}

// open opens a session, which goes on with the tasks of the one before it unless the lease of that is over.
func (w *Worker) open(ctx, run context.Context) (*session, error) {
	w.leaseOver()
	host, _ := os.Hostname()
	s := &session{Worker: w, reconnects: w.nc.Stats().Reconnects}
	s.ctx, s.end = context.WithCancel(run)
	inbox, err := w.nc.Subscribe(w.nc.NewInbox(), s.noticeArrived) // its own: of a task that was moved the old gateway says that it is lost
	if err != nil {
		return s, err
	}
	context.AfterFunc(s.ctx, func() { _ = inbox.Unsubscribe() })
	w.mu.Lock()
	w.session = s
	request := ask{Worker: w.options.Name, Slots: w.options.Slots, Activities: slices.Sorted(maps.Keys(w.handlers)), Inbox: inbox.Subject,
		Host: host[:min(len(host), 64)], Resume: w.resume, Claims: slices.Collect(maps.Keys(w.tasks))}
	timeout := w.patience()
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer context.AfterFunc(s.ctx, cancel)() // when all is lost
	sent := time.Now()
	a := call(ctx, w.nc, "thole."+w.options.Namespace+".gateway.open."+w.options.Queue, timeout, nil, request)
	w.leaseOver()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.ctx.Err() != nil || a.Status == StatusOK && (a.Subject == "" || a.Session == "" || a.LeaseMs == 0) {
		a = &answer{Status: noAnswer, Text: "an answer that comes too late, or has no session"}
	}
	if a.Status != StatusOK {
		s.end()
		return s, a.err()
	}
	s.subject, w.resume, w.payloadMax = a.Subject, a.Session, cmp.Or(a.PayloadMax, 256*1024)
	w.detailsMax = cmp.Or(a.DetailsMax, 16*1024)
	w.lease, s.renewEvery = time.Duration(a.LeaseMs)*time.Millisecond, time.Duration(a.RenewMs)*time.Millisecond
	if s.renewEvery <= 0 || s.renewEvery > w.lease/2 {
		s.renewEvery = w.lease / 3
	}
	w.log.Info("session opened", "session", a.Session, "gateway", a.Gateway, "tasks", len(w.tasks))
	w.renewed(sent, a)
	for _, h := range w.tasks {
		if h.result != nil {
			s.complete(h)
		}
	}
	return s, nil
}

// serve works in the session until it ends, or ctx ends and it is closed: true then.
func (s *session) serve(ctx context.Context) bool {
	defer s.end()
	go s.takeTasks(ctx)
	go s.renewals()
	select {
	case <-ctx.Done():
		return s.close()
	case <-s.ctx.Done():
		return false
	}
}

// call makes a request of the session, and ends the session if that has no answer or the gateway does not go on.
func (s *session) call(ctx context.Context, operation string, timeout time.Duration, request ask) *answer {
	if s.leaseOver() {
		return &answer{Status: noAnswer}
	}
	a := call(ctx, s.nc, s.subject+"."+operation, timeout, nil, request)
	switch {
	case a.Status == StatusOK:
		s.used.Store(true)
	case ctx.Err() != nil:
	case a.Status == StatusInvalid && operation == "complete": // it is about the outcome
	case refused(a.Status):
		s.fatal(a.err())
	default:
		s.log.Warn("not done", "operation", operation, "error", a.err())
		if a.Status == noAnswer || a.Status == StatusNotFound || a.Status == StatusUnavailable && operation == "next" {
			s.end()
		}
	}
	return a
}

// takeTasks asks for tasks until ctx or the session ends. An answer that comes after the end of ctx may still bring some.
func (s *session) takeTasks(ctx context.Context) {
	for pause := backoff(0); ctx.Err() == nil && s.ctx.Err() == nil; {
		select {
		case slot := <-s.slots:
			s.slots <- slot
		case <-s.ctx.Done():
			return
		}
		a := s.call(s.ctx, "next", nextWait+nextSpare, ask{Max: len(s.slots), WaitMs: nextWait.Milliseconds()})
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
func (s *session) begin(task *Task) {
	s.leaseOver()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil || s.tasks[task.Claim] != nil || !s.ended[task.Claim].IsZero() || len(s.slots) == 0 {
		return
	}
	<-s.slots
	h := &held{worker: s.Worker, task: task, stop: func() {}}
	h.ctx, h.cancel = context.WithCancelCause(context.Background())
	task.held = h
	s.tasks[task.Claim] = h
	go h.run()
}

// complete delivers an outcome until it is answered; if the session ends before, the next one does. Lock held.
func (s *session) complete(h *held) {
	ctx, stop := context.WithCancel(s.ctx)
	h.stop = stop
	go func() {
		for pause := backoff(0); ctx.Err() == nil; pause.wait(ctx) {
			s.mu.Lock()
			result, again := *h.result, h.sent
			h.sent = true
			s.mu.Unlock()
			a := s.call(ctx, "complete", storeWait, ask{Outcomes: []outcome{result}})
			r := outcomeResult{Status: a.Status, Text: a.Text}
			if a.Status == StatusOK && len(a.Results) == 1 {
				r = a.Results[0]
			} else if a.Status != StatusInvalid {
				continue
			}
			if r.Status == StatusInvalid {
				s.refuse(h, result, r.Text)
			}
			if r.Status == StatusInvalid || r.Status == StatusUnavailable || r.Status == StatusTimeout {
				continue
			}
			if r.Status == StatusFenced && again {
				s.log.Info("an outcome was sent before, and may be stored: its claim is gone", "activity", h.task.Activity, "instance", h.task.Instance)
			} else if r.Status != StatusOK {
				s.log.Warn("an outcome is refused", "activity", h.task.Activity, "instance", h.task.Instance, "status", r.Status, "text", r.Text)
			}
			s.mu.Lock()
			s.forget(h)
			s.mu.Unlock()
		}
	}()
}

// refuse has a task fail whose outcome the gateway cannot take; if it cannot take that either, the worker ends.
func (s *session) refuse(h *held, told outcome, why string) {
	err := &Error{Status: StatusInvalid, Text: "the gateway cannot take an outcome: " + why}
	s.log.Error("a failed try", "activity", h.task.Activity, "instance", h.task.Instance, "error", err)
	if told.Failure != nil && told.Failure.Type == outcomeRefused {
		s.fatal(err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	h.result = &outcome{Claim: h.task.Claim, Failure: taskFailureOf(&Failure{Text: err.Text, Type: outcomeRefused})}
}

// renewals go on until the session ends.
func (s *session) renewals() {
	var pause backoff
	for wait := s.renewEvery; sleep(s.ctx, wait); {
		if s.nc.Stats().Reconnects != s.reconnects { // answers may be lost
			s.end()
			return
		}
		s.mu.Lock()
		sent, timeout := time.Now(), s.patience()
		request, beats := s.running()
		s.mu.Unlock()
		a := s.call(s.ctx, "renew", timeout, request)
		if a.Status != StatusOK {
			wait = min(pause.next(), s.renewEvery)
			continue
		}
		pause, wait = 0, s.renewEvery-time.Since(sent)
		s.mu.Lock()
		if s.ctx.Err() == nil {
			s.renewed(sent, a)
			for h, beat := range beats {
				h.beaten = beat
			}
		}
		s.mu.Unlock()
	}
}

// close closes the session: true when it holds nothing any more.
func (s *session) close() bool {
	if s.stopBy.IsZero() {
		s.stopBy = time.Now().Add(s.options.CloseLimit)
	}
	for pause := backoff(0); s.ctx.Err() == nil; pause.wait(s.ctx) {
		limit := max(time.Until(s.stopBy), 0).Round(time.Millisecond)
		if a := s.call(s.ctx, "close", limit+closeSpare, ask{LimitMs: limit.Milliseconds()}); a.Status == StatusOK {
			return true
		}
	}
	return false
}

// ---- the lease ----

// patience is how long an answer to open or renew may take. Lock held.
func (w *Worker) patience() time.Duration {
	return min(answerWait, cmp.Or(w.lease/3, answerWait))
}

// renewed takes over an answer to what was sent then. Lock held.
func (w *Worker) renewed(sent time.Time, a *answer) {
	w.leaseEnd = sent.Add(w.lease)
	w.leaseTimer.Reset(time.Until(w.leaseEnd))
	for _, n := range a.Cancelled {
		w.notify(n)
	}
	for _, claim := range a.Gone {
		if h := w.tasks[claim]; h != nil {
			w.log.Warn("a claim is gone", "activity", h.task.Activity, "instance", h.task.Instance)
			w.drop(h)
		}
	}
	maps.DeleteFunc(w.ended, func(_ string, at time.Time) bool { return time.Since(at) > w.lease })
}

// leaseOver looks whether the lease is over; then all is lost. The timer calls it, and whoever is about to go by the lease:
// the process may have been stopped for long, and the timer need not be what runs first then.
func (w *Worker) leaseOver() bool {
	w.mu.Lock()
	over := w.resume != "" && !time.Now().Before(w.leaseEnd)
	w.mu.Unlock()
	if over {
		w.lose("no gateway answered for a lease")
	}
	return over
}

// lose ends the session for good: what is in hand is lost, and the next session is a new one.
func (w *Worker) lose(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.tasks {
		w.log.Warn("a task is lost", "why", why, "activity", h.task.Activity, "instance", h.task.Instance)
		w.drop(h)
	}
	clear(w.ended)
	w.resume = ""
	w.leaseTimer.Stop()
	if w.session != nil {
		w.session.end()
	}
}

// ---- tasks in hand ----

func (w *Worker) inHand() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.tasks)
}

// drop gives a claim up: its handler is to end, nothing is sent for it. Lock held.
func (w *Worker) drop(h *held) {
	h.cancel(&Cancelled{Kind: "lease_lost"})
	w.forget(h)
}

// forget ends a task: its outcome is stored or refused, or it is lost. Lock held.
func (w *Worker) forget(h *held) {
	h.stop()
	if w.tasks[h.task.Claim] == h {
		delete(w.tasks, h.task.Claim)
		w.ended[h.task.Claim] = time.Now()
		if h.result != nil {
			w.slots <- struct{}{}
		}
	}
}

func (s *session) noticeArrived(m *nats.Msg) {
	var n notice
	if json.Unmarshal(m.Data, &n) != nil {
		return
	}
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
func (w *Worker) notify(n notice) {
	if h := w.tasks[n.Claim]; h != nil {
		h.cancel(&Cancelled{Kind: n.Kind, Reason: n.Reason, Grace: time.Duration(n.GraceMs) * time.Millisecond})
	}
}

// running lists what is in hand with heartbeats, as many as one message takes; the others come next time. Lock held.
func (w *Worker) running() (ask, map[*held]uint64) {
	var request ask
	beats := map[*held]uint64{}
	budget := int(w.nc.MaxPayload()) / 2
	for claim, h := range w.tasks {
		entry := runningTask{Claim: claim}
		size := len(h.details)*4/3 + 64
		if h.beat != h.beaten && (size <= budget || len(beats) == 0) {
			entry.Heartbeat, entry.Details = true, h.details
			beats[h] = h.beat
			budget -= size
		}
		request.Running = append(request.Running, entry)
	}
	return request, beats
}
