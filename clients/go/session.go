package thole

import (
	"cmp"
	"context"
	"os"
	"sync/atomic"
	"time"
)

const (
	nextWait   = 10 * time.Second // of next: then it is asked again
	nextSpare  = 5 * time.Second  // before it counts as not answered
	answerWait = 5 * time.Second  // of open and renew; no more than a third of the lease
	storeWait  = 10 * time.Second // of complete
	closeSpare = 10 * time.Second // of close, more than its limit
)

// session is one with one gateway. When that does not answer, or does not go on, the session ends, and the next one takes
// its tasks over.
type session struct {
	worker     *Worker
	ctx        context.Context // ends with it
	end        context.CancelFunc
	subject    string // empty: it is not open yet
	renewEvery time.Duration
	reconnects uint64      // of the connection when it was opened
	used       atomic.Bool // an operation has been answered
}

// open opens a session, which goes on with the tasks of the one before it unless the lease of that is over.
func (w *Worker) open(ctx, run context.Context) (*session, *answer) {
	w.leaseOver()
	host, _ := os.Hostname()
	s := &session{worker: w, reconnects: w.nc.Stats().Reconnects}
	s.ctx, s.end = context.WithCancel(run)
	w.mu.Lock()
	w.session = s
	request := ask{Worker: w.options.Name, Slots: w.options.Slots, Activities: w.names, Inbox: w.inbox.Subject,
		Host: host[:min(len(host), 64)], Resume: w.resume}
	for claim := range w.tasks {
		request.Claims = append(request.Claims, claim)
		ctx = s.ctx // also while the worker stops, until they are lost
	}
	timeout := w.patience()
	w.mu.Unlock()
	sent := time.Now()
	opened := call(ctx, w.nc, "thole."+w.options.Namespace+".gateway.open."+w.options.Queue, timeout, nil, request)
	w.leaseOver()
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.ctx.Err() != nil || opened.Status == StatusOK && (opened.Subject == "" || opened.Session == "" || opened.LeaseMs == 0) {
		opened.Status = noAnswer // it cannot be used, or is for tasks that are lost by now
	}
	if opened.Status != StatusOK {
		s.end()
		return s, opened
	}
	s.subject, w.resume, w.payloadMax = opened.Subject, opened.Session, cmp.Or(opened.PayloadMax, 256*1024)
	w.lease = time.Duration(opened.LeaseMs) * time.Millisecond
	s.renewEvery = time.Duration(opened.RenewMs) * time.Millisecond
	if s.renewEvery <= 0 || s.renewEvery > w.lease/2 {
		s.renewEvery = w.lease / 3
	}
	w.log.Info("session opened", "session", opened.Session, "gateway", opened.Gateway, "tasks", len(w.tasks))
	w.renewed(sent, opened)
	for _, h := range w.tasks {
		if h.result != nil {
			s.complete(h)
		}
	}
	return s, opened
}

// call makes a request of the session, and ends the session if that has no answer or the gateway does not go on.
func (s *session) call(ctx context.Context, operation string, timeout time.Duration, request ask) *answer {
	w := s.worker
	if w.leaseOver() {
		return &answer{Status: noAnswer}
	}
	a := call(ctx, w.nc, s.subject+"."+operation, timeout, nil, request)
	switch {
	case a.Status == StatusOK:
		s.used.Store(true)
	case ctx.Err() != nil:
	case a.Status == StatusInvalid || a.Status == StatusDenied:
		w.fatal(a.err())
	case a.Status == noAnswer, a.Status == StatusNotFound, a.Status == StatusUnavailable && operation == "next":
		w.log.Warn("the session ends", "operation", operation, "status", a.Status, "text", a.Text)
		s.end()
	default:
		w.log.Warn("refused", "operation", operation, "status", a.Status, "text", a.Text)
	}
	return a
}

// takeTasks asks for tasks until ctx or the session ends. An answer that comes after the end of ctx may still bring some.
func (s *session) takeTasks(ctx context.Context) {
	w := s.worker
	var pause backoff
	for ctx.Err() == nil && s.ctx.Err() == nil {
		free := w.free()
		if free <= 0 {
			select {
			case <-w.freed:
			case <-s.ctx.Done():
			}
			continue
		}
		a := s.call(s.ctx, "next", nextWait+nextSpare, ask{Max: free, WaitMs: nextWait.Milliseconds()})
		if a.Status != StatusOK {
			pause.wait(s.ctx)
			continue
		}
		pause.reset()
		w.begin(s, a.Tasks)
	}
}

// renewals go on until the session ends.
func (s *session) renewals() {
	w := s.worker
	var pause backoff
	for wait := s.renewEvery; sleep(s.ctx, wait); {
		if w.nc.Stats().Reconnects != s.reconnects { // answers may be lost
			s.end()
			return
		}
		w.mu.Lock()
		sent, timeout := time.Now(), w.patience()
		request, beats := w.running()
		w.mu.Unlock()
		a := s.call(s.ctx, "renew", timeout, request)
		if a.Status != StatusOK {
			wait = min(pause.next(), s.renewEvery)
			continue
		}
		pause.reset()
		wait = s.renewEvery - time.Since(sent)
		w.mu.Lock()
		if s.ctx.Err() == nil {
			w.renewed(sent, a)
			for h, beat := range beats {
				h.beaten = beat
			}
		}
		w.mu.Unlock()
	}
}

// complete delivers an outcome until it is answered; if the session ends before, the next one does. Lock held.
func (s *session) complete(h *held) {
	ctx, stop := context.WithCancel(s.ctx)
	h.stop = stop
	go func() {
		var pause backoff
		for ctx.Err() == nil {
			a := s.call(ctx, "complete", storeWait, ask{Outcomes: []outcome{*h.result}})
			if a.Status == StatusOK && len(a.Results) == 1 && final(a.Results[0].Status) {
				s.worker.stored(h, a.Results[0])
				return
			}
			pause.wait(ctx)
		}
	}()
}

func final(status Status) bool { return status != StatusUnavailable && status != StatusTimeout }

// close closes the session: true when it holds nothing any more.
func (s *session) close() bool {
	var pause backoff
	for s.ctx.Err() == nil {
		limit := s.worker.timeLeft()
		if a := s.call(s.ctx, "close", limit+closeSpare, ask{LimitMs: limit.Milliseconds()}); a.Status == StatusOK {
			return true
		}
		pause.wait(s.ctx)
	}
	return false
}
