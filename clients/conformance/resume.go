package main

import "time"

// What holds for an open: one session at a time, which goes on with the tasks of the one before it until its lease is over.

// byID finds a session, or the last one that goes on with it: the answers to the others were lost.
func (g *gateway) byID(id string) *session {
	for _, s := range g.sessions {
		if s.id == id {
			for s.next != nil && !s.next.used(time.Now()) {
				s = s.next
			}
			return s
		}
	}
	return nil
}

// used says whether there was a request in it until then: its worker knows it.
func (s *session) used(until time.Time) bool {
	for _, r := range s.requests {
		if r.at.Before(until) {
			return true
		}
	}
	return false
}

func (g *gateway) leaseOver(s *session) time.Duration {
	return time.Since(s.renewed) - time.Duration(s.leaseMs)*time.Millisecond
}

// resume gives a new session the tasks of the one that it goes on with, and says which of its claims are gone.
func (g *gateway) resume(s *session, r *request) (gone []string) {
	old := g.byID(r.open.Resume)
	switch {
	case old == nil:
		g.problem("open resumes %q, which there never was", r.open.Resume)
		return r.open.Claims
	case old.next != nil:
		g.problem("open resumes %s, not %s, which went on with it", old.id, old.next.id)
	case old.closed:
		g.problem("open resumes %s, which is closed", old.id)
	case g.leaseOver(old) > tolerance() && !g.lossy: // else it may have been on its way
		g.problem("open resumes %s, whose lease has been over for %v", old.id, g.leaseOver(old).Round(time.Millisecond))
	}
	listed := map[string]bool{}
	for _, claim := range r.open.Claims {
		t := old.find(claim)
		if listed[claim] {
			g.problem("open lists %q twice", claim)
		}
		listed[claim] = true
		switch {
		case t == nil:
			g.problem("open lists %q, which was never handed out in %s", claim, old.id)
		case !t.answered.IsZero() && r.at.Sub(t.answered) > tolerance():
			g.problem("open lists %q, which was answered, or lost, %v before", claim, r.at.Sub(t.answered).Round(time.Millisecond))
		}
		if t == nil || t.gone {
			gone = append(gone, claim)
		}
		if t != nil && t.gone {
			t.lose()
			t.gone = false // told here, and not again by renewals
		}
	}
	for _, t := range old.tasks {
		if t.inHand() && !listed[t.wire.Claim] {
			if t.finished || !g.lossy && r.at.Sub(t.given) > tolerance() {
				g.problem("open leaves out %q, which is in hand", t.wire.Claim)
			}
			t.given = time.Time{} // it has not arrived, and comes again
			g.queue = append([]*task{t}, g.queue...)
			continue
		}
		t.sess = s
		s.tasks = append(s.tasks, t)
	}
	old.unpark()
	old.next, old.dead = s, true
	return gone
}

// checkNew: a new session is opened when there was none, or its lease is over. What was in hand is lost then.
func (g *gateway) checkNew(r *request) {
	if len(r.open.Claims) > 0 {
		g.problem("open has claims, and no session that it resumes")
	}
	var old *session
	for _, s := range g.sessions {
		if s.used(r.at) {
			old = s
		}
	}
	if old == nil {
		return
	}
	if old.closed {
		g.problem("open after %s was closed", old.id)
	} else if over := g.leaseOver(old); over < -tolerance() {
		g.problem("open does not resume %s, whose lease goes on for %v", old.id, -over.Round(time.Millisecond))
	}
	for old.next != nil { // which the worker does not know of
		old = old.next
	}
	old.dead = true
	for _, t := range old.tasks {
		if t.inHand() {
			t.lose()
		}
	}
}

func (t *task) inHand() bool { return !t.given.IsZero() && !t.lost && t.answered.IsZero() }

func (t *task) lose() {
	t.lost = true
	if t.answered.IsZero() {
		t.answered = time.Now()
	}
}
