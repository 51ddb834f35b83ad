// Package thole runs activities of thole, and starts and controls its instances, through a gateway: docs/gateway.md.
package thole

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
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

const rememberedClaims = 4096 // that are not in hand any more: a task may come twice

// Worker runs activities. Register them, then Run.
type Worker struct {
	nc       *nats.Conn
	options  Options
	log      *slog.Logger
	handlers map[string]Handler
	names    []string
	inbox    *nats.Subscription
	fatal    context.CancelCauseFunc
	stopBy   time.Time // when what still runs is to end, once the worker stops
	freed    chan struct{}

	mu         sync.Mutex
	tasks      map[string]*held // in hand: until the outcome is stored or refused, or the claim is lost
	known      map[string]bool  // claims that were in hand
	knownOrder []string         // oldest first
	taken      int              // slots: of tasks in hand, and of handlers that run on for lost ones
	session    *session         // the newest one, which may not be open yet, or not any more
	resume     string           // the last one that was opened, until its lease is over
	lease      time.Duration
	leaseEnd   time.Time
	leaseTimer *time.Timer
	payloadMax uint64
}

// NewWorker makes a worker on a connection, which should reconnect for ever (nats.MaxReconnects(-1)).
func NewWorker(nc *nats.Conn, options Options) *Worker {
	options.Namespace = cmp.Or(options.Namespace, "default")
	options.Queue = cmp.Or(options.Queue, "default")
	options.Name = cmp.Or(options.Name, fmt.Sprintf("go-%d", os.Getpid()))
	options.Slots = cmp.Or(max(options.Slots, 0), 10)
	options.CloseLimit = cmp.Or(max(options.CloseLimit, 0), 30*time.Second)
	options.Logger = cmp.Or(options.Logger, slog.Default())
	return &Worker{nc: nc, options: options, log: options.Logger.With("worker", options.Name, "queue", options.Queue),
		handlers: map[string]Handler{}, tasks: map[string]*held{}, known: map[string]bool{}, freed: make(chan struct{}, 1)}
}

// Register adds an activity. Not while Run runs.
func (w *Worker) Register(activity string, handler Handler) {
	if _, known := w.handlers[activity]; !known {
		w.names = append(w.names, activity)
	}
	w.handlers[activity] = handler
}

// Run works until ctx ends, then stops gracefully: no new tasks; those that run may end within CloseLimit. It returns nil
// then. Any other end is an error: the gateway refuses this worker.
func (w *Worker) Run(ctx context.Context) error {
	if err := checkNames(w.options.Namespace, w.options.Queue, w.options.Name); err != nil {
		return err
	}
	run, fatal := context.WithCancelCause(context.WithoutCancel(ctx))
	w.fatal = fatal
	defer fatal(nil)
	var err error
	if w.inbox, err = w.nc.Subscribe(w.nc.NewInbox(), w.noticeArrived); err != nil {
		return err
	}
	defer func() { _ = w.inbox.Unsubscribe() }()
	w.leaseTimer = time.AfterFunc(time.Hour, func() { w.leaseOver() })
	defer w.lose("the worker ends")
	for closed, pause := false, new(backoff); !closed && run.Err() == nil && (ctx.Err() == nil || w.inHand() > 0); {
		s, opened := w.open(ctx, run)
		switch opened.Status {
		case StatusOK:
			closed = s.serve(ctx)
		case StatusInvalid, StatusDenied:
			return fmt.Errorf("the gateway refuses to open a session: %w", opened.err())
		default:
			w.log.Warn("no session", "status", opened.Status, "text", opened.Text)
		}
		if s.used.Load() {
			pause.reset()
		} else if w.inHand() > 0 {
			pause.wait(run)
		} else {
			pause.wait(ctx)
		}
	}
	return context.Cause(run)
}

// serve works in the session until it ends, or ctx ends and it is closed: true then.
func (s *session) serve(ctx context.Context) bool {
	defer s.end()
	go s.renewals()
	go s.takeTasks(ctx)
	select {
	case <-ctx.Done():
		return s.close()
	case <-s.ctx.Done():
		return false
	}
}

// timeLeft is how long tasks may still run while the worker stops.
func (w *Worker) timeLeft() time.Duration {
	if w.stopBy.IsZero() {
		w.stopBy = time.Now().Add(w.options.CloseLimit)
	}
	return max(time.Until(w.stopBy), 0).Round(time.Millisecond)
}

// ---- the lease ----

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
}

// patience is how long an answer to open or renew may take. Lock held.
func (w *Worker) patience() time.Duration {
	if w.lease == 0 {
		return answerWait
	}
	return min(answerWait, w.lease/3)
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
	if len(w.tasks) > 0 {
		w.log.Warn("tasks are lost", "why", why, "tasks", len(w.tasks))
	}
	for _, h := range w.tasks {
		w.drop(h)
	}
	clear(w.known)
	w.knownOrder, w.resume = nil, ""
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

func (w *Worker) free() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.options.Slots - w.taken
}

// begin runs tasks of an answer, but for those whose claims are known: a task may come twice.
func (w *Worker) begin(s *session, list []*Task) {
	w.leaseOver()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, task := range list {
		if s.ctx.Err() != nil || w.tasks[task.Claim] != nil || w.known[task.Claim] {
			continue // in the first case it comes again, in the next session
		}
		h := &held{worker: w, task: task, stop: func() {}}
		h.ctx, h.cancel = context.WithCancelCause(context.Background())
		task.held = h
		w.tasks[task.Claim] = h
		w.taken++
		go func() { w.ended(h, h.outcome(h.handle())) }()
	}
}

// ended: a handler has returned.
func (w *Worker) ended(h *held, result outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	h.result = &result
	if w.tasks[h.task.Claim] != h {
		w.release() // it was lost
	} else if w.session.subject != "" {
		w.session.complete(h)
	}
}

// stored: its outcome was answered.
func (w *Worker) stored(h *held, r outcomeResult) {
	if r.Status != StatusOK {
		w.log.Warn("an outcome is refused", "activity", h.task.Activity, "instance", h.task.Instance, "status", r.Status, "text", r.Text)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(h)
}

// drop gives a claim up: its handler is to end, nothing is sent for it. Lock held.
func (w *Worker) drop(h *held) {
	h.cancel(&Cancelled{Kind: "lease_lost"})
	w.forget(h)
}

// forget ends a task: its outcome is stored or refused, or it is lost. Lock held.
func (w *Worker) forget(h *held) {
	claim := h.task.Claim
	if w.tasks[claim] != h {
		return
	}
	delete(w.tasks, claim)
	h.stop()
	w.known[claim] = true
	if w.knownOrder = append(w.knownOrder, claim); len(w.knownOrder) > rememberedClaims {
		delete(w.known, w.knownOrder[0])
		w.knownOrder = w.knownOrder[1:]
	}
	if h.result != nil {
		w.release()
	}
}

// release frees a slot. Lock held.
func (w *Worker) release() {
	w.taken--
	select {
	case w.freed <- struct{}{}:
	default:
	}
}

func (w *Worker) noticeArrived(m *nats.Msg) {
	var n notice
	if json.Unmarshal(m.Data, &n) == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.notify(n)
	}
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
