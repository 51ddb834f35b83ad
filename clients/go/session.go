package thole

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	nextWait        = 10 * time.Second // of next: then it is asked again
	answerWait      = 10 * time.Second // of requests that are answered soon
	spareWait       = 5 * time.Second  // of next, more than nextWait
	closeSpare      = 10 * time.Second // of close, more than its limit
	renewWait       = 2 * time.Second
	earlyNotices    = 64   // that are kept: a notice may overtake its task by a moment
	completedClaims = 4096 // that are remembered, since a task may come twice
)

// session is one with one gateway. Its context ends when it is over: lost, closed, or retired and empty.
type session struct {
	worker     *Worker
	log        *slog.Logger
	subject    string
	lease      time.Duration
	renewEvery time.Duration
	payloadMax uint64
	inbox      *nats.Subscription
	ctx        context.Context
	end        context.CancelFunc

	mu         sync.Mutex
	held       map[string]*held
	completed  map[string]bool
	order      []string // of completed, oldest first
	early      []notice // of claims that are not known, oldest first
	leaseStart time.Time
	answers    int    // with status 0, to anything but open
	retired    bool   // no further tasks; over when it holds nothing
	reconnects uint64 // of the connection when the current next was sent
	nextCancel context.CancelFunc
}

// open opens a session; it lives until run ends.
func (w *Worker) open(ctx, run context.Context) (*session, error) {
	s := &session{worker: w, held: map[string]*held{}, completed: map[string]bool{}}
	s.ctx, s.end = context.WithCancel(run)
	var err error
	if s.inbox, err = w.nc.Subscribe(w.nc.NewInbox(), s.noticeArrived); err != nil {
		return nil, err
	}
	context.AfterFunc(s.ctx, func() { _ = s.inbox.Unsubscribe() })
	request := ask{Worker: w.options.Name, Slots: w.options.Slots, Activities: w.names, Inbox: s.inbox.Subject}
	sent := time.Now()
	opened, err := call(ctx, w.nc, "thole."+w.options.Namespace+".gateway.open."+w.options.Queue, answerWait, nil, request)
	if err == nil && (opened.Subject == "" || opened.LeaseMs == 0) {
		err = errBroken
	}
	if err != nil {
		s.end()
		return nil, err
	}
	s.subject, s.payloadMax, s.leaseStart = opened.Subject, cmp.Or(opened.PayloadMax, 256*1024), sent
	s.lease = time.Duration(opened.LeaseMs) * time.Millisecond
	s.renewEvery = time.Duration(opened.RenewMs) * time.Millisecond
	if s.renewEvery <= 0 || s.renewEvery > s.lease/2 {
		s.renewEvery = s.lease / 3
	}
	s.log = w.log.With("session", opened.Session, "gateway", opened.Gateway)
	s.log.Info("session opened")
	w.mu.Lock()
	w.sessions[s] = true
	w.mu.Unlock()
	go s.renewals()
	return s, nil
}

// call makes a request of the session, unless its lease is over by now: the process may have been stopped for long, and
// what runs first then need not be the renewals.
func (s *session) call(ctx context.Context, operation string, timeout time.Duration, request ask) (*answer, error) {
	if s.expired() {
		return nil, errNoAnswer
	}
	told, err := call(ctx, s.worker.nc, s.subject+"."+operation, timeout, nil, request)
	if err == nil {
		s.mu.Lock()
		s.answers++
		s.mu.Unlock()
	}
	if refused(err) && s.ctx.Err() == nil {
		s.worker.fatal(err)
	}
	if unknown(err) && s.inHand() == 0 {
		s.over("the gateway does not know it")
	}
	return told, err
}

// expired ends the session when its lease is over.
func (s *session) expired() bool {
	expired := !time.Now().Before(s.leaseEnd())
	if expired {
		s.over("no renewal was answered for a lease")
	}
	return expired
}

func (s *session) leaseEnd() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.leaseStart.Add(s.lease)
}

// used says whether the gateway has ever answered in this session.
func (s *session) used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers > 0
}

func (s *session) inHand() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

// over ends the session: what is in hand is lost.
func (s *session) over(why string) {
	s.mu.Lock()
	if s.ctx.Err() == nil {
		s.log.Info("session over", "why", why, "tasks", len(s.held))
	}
	for _, h := range s.held {
		s.lose(h)
	}
	s.mu.Unlock()
	s.end()
	s.worker.mu.Lock()
	delete(s.worker.sessions, s)
	s.worker.mu.Unlock()
}

// lose gives a claim up: its handler is to end, nothing is sent for it. Called with the lock held.
func (s *session) lose(h *held) {
	h.drop()
	h.told = true
	h.cancel(&Cancelled{Kind: "lease_lost"})
	delete(s.held, h.claim)
	s.remember(h.claim)
}

func (s *session) remember(claim string) {
	if s.completed[claim] {
		return
	}
	s.completed[claim] = true
	s.order = append(s.order, claim)
	if len(s.order) > completedClaims {
		delete(s.completed, s.order[0])
		s.order = s.order[1:]
	}
}

// ---- tasks ----

// takeTasks asks for tasks until ctx ends, or this session takes none any more.
func (s *session) takeTasks(ctx context.Context) {
	var pause backoff
	for ctx.Err() == nil && s.ctx.Err() == nil {
		free := s.worker.free()
		if free <= 0 {
			select {
			case <-s.worker.freed:
			case <-ctx.Done():
			case <-s.ctx.Done():
			}
			continue
		}
		arrived := make(chan error, 1)
		go func() { arrived <- s.next(free) }()
		var err error
		select {
		case err = <-arrived:
		case <-ctx.Done(): // the answer may still bring tasks: next goes on, until the session is closed
			return
		}
		status, _ := answered(err)
		switch {
		case err == nil:
			pause.reset()
		case status == StatusUnavailable:
			s.retire()
			return
		case errors.Is(err, context.Canceled): // asked anew after a reconnection
		default:
			pause.wait(s.ctx, ctx)
		}
	}
}

func (s *session) next(free int) error {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	s.mu.Lock()
	s.reconnects, s.nextCancel = s.worker.nc.Stats().Reconnects, cancel
	s.mu.Unlock()
	told, err := s.call(ctx, "next", nextWait+spareWait, ask{Max: free, WaitMs: nextWait.Milliseconds()})
	if err == nil && !s.expired() {
		for _, task := range told.Tasks {
			s.begin(task)
		}
	}
	return err
}

// begin runs a task, unless its claim is known: a task may come twice.
func (s *session) begin(task *Task) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[task.Claim] != nil || s.completed[task.Claim] || s.ctx.Err() != nil {
		return
	}
	h := &held{session: s, claim: task.Claim, task: task}
	task.held = h
	h.sending, h.drop = context.WithCancel(s.ctx)
	h.ctx, h.cancel = context.WithCancelCause(context.WithoutCancel(s.ctx))
	s.held[h.claim] = h
	s.worker.take()
	for i := range s.early {
		if s.early[i].Claim == h.claim {
			s.notify(&s.early[i])
		}
	}
	go h.run()
}

// forget ends a task: its outcome is stored or refused, or it was lost before.
func (s *session) forget(h *held) {
	s.mu.Lock()
	h.cancel(nil)
	h.drop()
	if s.held[h.claim] == h {
		delete(s.held, h.claim)
		s.remember(h.claim)
	}
	s.mu.Unlock()
	s.endIfEmpty()
}

// retire takes no further tasks; those that run are renewed and completed.
func (s *session) retire() {
	s.log.Info("the gateway stops")
	s.mu.Lock()
	s.retired = true
	s.mu.Unlock()
	s.endIfEmpty()
}

func (s *session) endIfEmpty() {
	s.mu.Lock()
	empty := s.retired && len(s.held) == 0
	s.mu.Unlock()
	if empty {
		s.over("its gateway stops")
	}
}

// complete delivers an outcome until it is answered, or the claim is lost.
func (s *session) complete(h *held, result outcome) {
	var pause backoff
	for h.sending.Err() == nil {
		told, err := s.call(h.sending, "complete", answerWait, ask{Outcomes: []outcome{result}})
		if err == nil && len(told.Results) == 1 && final(told.Results[0].Status) {
			if r := told.Results[0]; r.Status != StatusOK {
				s.log.Warn("an outcome is refused", "activity", h.task.Activity, "instance", h.task.Instance, "status", r.Status, "text", r.Text)
			}
			return
		}
		if h.sending.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			pause.wait(h.sending)
		}
	}
}

func final(status Status) bool { return status != StatusUnavailable && status != StatusTimeout }

// ---- renewals and notices ----

// renewals go on until the session is over: when no renewal has been answered for a lease, it is lost.
func (s *session) renewals() {
	var pause backoff
	next := time.Now().Add(s.renewEvery)
	for {
		end := s.leaseEnd()
		if !sleep(min(time.Until(next), time.Until(end)), s.ctx) {
			s.over("closed")
			return
		}
		if s.expired() {
			return
		}
		sent := time.Now()
		request, beats := s.running()
		timeout := max(min(max(s.renewEvery, renewWait), (s.lease-s.renewEvery)/2, end.Sub(sent)), time.Millisecond)
		told, err := s.call(s.ctx, "renew", timeout, request)
		next = sent.Add(s.renewEvery)
		if err == nil {
			pause.reset()
			s.renewed(sent, told, beats)
		} else if s.ctx.Err() == nil {
			s.log.Warn("not renewed", "error", err)
			next = time.Now().Add(min(pause.next(), s.renewEvery))
		}
	}
}

// running lists what is in hand with heartbeats, as many as one message takes; the others come next time.
func (s *session) running() (ask, map[*held]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var request ask
	beats := map[*held]uint64{}
	budget := int(s.worker.nc.MaxPayload()) / 2
	for claim, h := range s.held {
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

func (s *session) renewed(sent time.Time, told *answer, beats map[*held]uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leaseStart = sent
	for h, beat := range beats {
		h.beaten = beat
	}
	for i := range told.Cancelled {
		s.notify(&told.Cancelled[i])
	}
	for _, claim := range told.Gone {
		if h := s.held[claim]; h != nil {
			s.log.Warn("a claim is gone", "activity", h.task.Activity, "instance", h.task.Instance)
			s.lose(h)
		}
	}
	if s.nextCancel != nil && s.worker.nc.Stats().Reconnects != s.reconnects { // the answer to next may be lost
		s.nextCancel()
	}
}

func (s *session) noticeArrived(m *nats.Msg) {
	var n notice
	if json.Unmarshal(m.Data, &n) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[n.Claim] == nil && !s.completed[n.Claim] {
		s.early = append(s.early[max(0, len(s.early)-earlyNotices+1):], n)
		return
	}
	s.notify(&n)
}

// notify ends a handler's context; the first notice counts. Called with the lock held.
func (s *session) notify(n *notice) {
	if h := s.held[n.Claim]; h != nil && !h.told {
		h.told = true
		h.cancel(&Cancelled{Kind: n.Kind, Reason: n.Reason, Grace: time.Duration(n.GraceMs) * time.Millisecond})
	}
}

// close stops the session, and returns when it holds nothing any more, or cannot be asked.
func (s *session) close(limit time.Duration) {
	ctx, cancel := context.WithTimeout(s.ctx, limit+closeSpare)
	defer cancel()
	var pause backoff
	for ctx.Err() == nil {
		_, err := s.call(ctx, "close", limit+closeSpare, ask{LimitMs: limit.Milliseconds()})
		if err == nil {
			break
		}
		s.log.Warn("not closed", "error", err)
		pause.wait(ctx)
	}
	s.over("closed")
}
