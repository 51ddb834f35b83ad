// Package thole runs activities of thole, and starts and controls its instances, through a gateway: docs/gateway.md.
package thole

import (
	"cmp"
	"context"
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

// Worker runs activities. Register them, then Run.
type Worker struct {
	nc       *nats.Conn
	options  Options
	log      *slog.Logger
	handlers map[string]Handler
	names    []string

	mu       sync.Mutex
	taken    int // slots: until the outcome is stored, or dropped, and the handler has returned
	freed    chan struct{}
	sessions map[*session]bool
	fatal    context.CancelCauseFunc
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
		handlers: map[string]Handler{}, freed: make(chan struct{}, 1), sessions: map[*session]bool{}}
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
	for _, name := range []string{w.options.Namespace, w.options.Queue, w.options.Name} {
		if !isName(name) {
			return &Error{Status: StatusInvalid, Text: fmt.Sprintf("%.80q is no name: [A-Za-z0-9_-]{1,64}", name)}
		}
	}
	run, fatal := context.WithCancelCause(context.WithoutCancel(ctx))
	defer fatal(nil)
	w.fatal = fatal
	var pause backoff
	for ctx.Err() == nil && run.Err() == nil {
		s, err := w.open(ctx, run)
		if err == nil {
			s.takeTasks(ctx)
			if s.used() {
				pause.reset()
				continue
			}
		} else if refused(err) {
			return fmt.Errorf("the gateway refuses to open a session: %w", err)
		} else if ctx.Err() == nil {
			w.log.Warn("no session", "error", err)
		}
		pause.wait(ctx, run)
	}
	if run.Err() == nil {
		w.close()
	}
	return context.Cause(run)
}

// close closes all sessions, and returns when they hold nothing any more.
func (w *Worker) close() {
	w.mu.Lock()
	var group sync.WaitGroup
	for s := range w.sessions {
		group.Add(1)
		go func() {
			defer group.Done()
			s.close(w.options.CloseLimit)
		}()
	}
	w.mu.Unlock()
	group.Wait()
}

// ---- slots ----

func (w *Worker) free() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.options.Slots - w.taken
}

func (w *Worker) take() {
	w.mu.Lock()
	w.taken++
	w.mu.Unlock()
}

func (w *Worker) release() {
	w.mu.Lock()
	w.taken--
	w.mu.Unlock()
	select {
	case w.freed <- struct{}{}:
	default:
	}
}
