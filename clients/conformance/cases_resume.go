package main

import (
	"syscall"
	"time"
)

// lease makes leases short.
func lease(c *env, leaseMs, renewMs uint32) {
	c.locked(func() { c.g.leaseMs, c.g.renewMs = leaseMs, renewMs })
}

// kill takes the gateway of a session away: nobody answers there any more.
func (c *env) kill(s *session) {
	c.log.add("-- the gateway of " + s.id + " dies")
	c.locked(func() { s.dead = true; c.g.disconnect(s) })
}

// forget lets the gateway answer NOT_FOUND.
func (c *env) forget(s *session) {
	c.log.add("-- the gateway forgets " + s.id)
	c.locked(func() { s.dead = true })
}

// mute lets no operation of a session be answered.
func (c *env) mute(s *session) {
	c.log.add("-- " + s.id + " is answered no more")
	c.hook(func(r *request) bool { return r.sess == s })
}

// stopping lets the gateway of a session hand out no more.
func (c *env) stopping(s *session) {
	c.log.add("-- the gateway of " + s.id + " stops")
	c.locked(func() {
		c.g.hook = func(r *request) bool {
			if r.op != "next" || r.sess != s {
				return false
			}
			r.refuse(statusUnavailable, "this gateway is stopping")
			return true
		}
		if parked := s.parked; parked != nil {
			s.unpark()
			parked.refuse(statusUnavailable, "this gateway is stopping")
		}
	})
}

// resumed waits for the session that goes on with this one, and for its first request.
func (c *env) resumed(s *session, within time.Duration) *session {
	c.until(within, "a session that resumes "+s.id+", and is used", func() bool { return s.next != nil && s.next.used(time.Now()) })
	return s.next
}

// goesOn: the task and those that come then end in the session that resumes its.
func (c *env) goesOn(s *session, t *task, within time.Duration) {
	next := c.resumed(s, within)
	begin := time.Now()
	c.echo()
	if got := c.outcome(t, 6*time.Second); string(got.Output) != string(t.wire.Input) {
		c.fail("the outcome is %s", short(got))
	}
	c.until(time.Second, "the answer", func() bool { return !t.answered.IsZero() })
	c.locked(func() {
		if t.sess != next || t.lost {
			c.fail("the task did not go on in %s", next.id)
		}
		if ran := t.times[0].Sub(begin); next.counts["renew"] == 0 && ran > scaled(700*time.Millisecond) {
			c.fail("no renewal in %s while the task ran on for %v", next.id, ran)
		}
	})
	onlyOnce(c, t)
}

var resumeCases = []testCase{
	{"resume-killed", "no responders: another session at once, which goes on with what runs", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "4500")
		c.pause(tolerance()) // so that it must have arrived
		c.kill(s)
		c.goesOn(s, t, 1500*time.Millisecond)
	}},
	{"resume-not-found", "the same for NOT_FOUND", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "2500")
		c.forget(s)
		c.goesOn(s, t, 1500*time.Millisecond)
	}},
	{"resume-silent", "the same when renew is not answered in its time, which leaves most of the lease", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "4500")
		c.mute(s)
		c.goesOn(s, t, 3500*time.Millisecond)
	}},
	{"resume-stopping", "the same, at once, for UNAVAILABLE on next", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "2500")
		c.stopping(s)
		c.goesOn(s, t, 500*time.Millisecond)
	}},
	{"resume-stopping-twice", "the gateway that answers then stops, too", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "2500")
		c.stopping(s)
		c.until(time.Second, "another session", func() bool { return s.next != nil })
		c.stopping(s.next)
		c.goesOn(s.next, t, 2*time.Second)
	}},
	{"resume-idle-killed", "no responders with nothing in hand: another session at once", func(c *env) {
		s := c.worker()
		c.pause(400 * time.Millisecond)
		c.kill(s)
		c.resumed(s, 1500*time.Millisecond)
		c.echo()
	}},
	{"resume-idle-not-found", "NOT_FOUND with nothing in hand: another session at once", func(c *env) {
		s := c.worker()
		c.echo()
		c.pause(400 * time.Millisecond)
		c.forget(s)
		c.resumed(s, 1500*time.Millisecond)
		c.echo()
	}},
	{"resume-idle-stopping", "UNAVAILABLE on next with nothing in hand: another session at once", func(c *env) {
		s := c.worker()
		c.stopping(s)
		c.resumed(s, 500*time.Millisecond)
		c.echo()
	}},
	{"resume-complete-not-found", "NOT_FOUND on complete: another session, and the outcome again there", func(c *env) {
		s := c.worker()
		c.hook(func(r *request) bool {
			if r.op == "complete" && r.sess == s {
				s.dead = true
			}
			return false
		})
		t := c.give("echo", "x")
		c.until(3*time.Second, "complete is taken", func() bool { return !t.answered.IsZero() })
		c.resumed(s, time.Second)
		c.echo()
	}},
	{"resume-completing", "a complete that is not answered before the move is repeated identically after it", func(c *env) {
		s := c.worker()
		c.hook(func(r *request) bool { return r.op == "complete" && r.sess == s })
		t, u := c.give("fail", "final"), c.running("sleep", "2500")
		c.outcome(t, 3*time.Second)
		c.kill(s)
		c.until(3*time.Second, "complete is taken", func() bool { return !t.answered.IsZero() })
		c.goesOn(s, u, time.Second)
	}},
	{"resume-completed", "the same when the outcome was stored, and the answer got lost", func(c *env) {
		s := c.worker()
		c.hook(func(r *request) bool {
			if r.op == "complete" && r.sess == s {
				r.completed()
				r.sess.find(r.complete.Outcomes[0].Claim).answered = time.Time{}
				return true
			}
			return false
		})
		t := c.give("echo", "x")
		c.outcome(t, 3*time.Second)
		c.forget(s)
		c.until(3*time.Second, "complete is taken", func() bool { return !t.answered.IsZero() })
		c.echo()
	}},
	{"resume-ends-meanwhile", "a handler that ends while no gateway answers: its outcome comes in the next session", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "1200")
		begin := time.Now()
		c.hook(func(r *request) bool {
			if r.op == "open" && time.Since(begin) < 2*time.Second {
				r.refuse(statusUnavailable, "not now")
				return true
			}
			return false
		})
		c.kill(s)
		c.expectOutput(t, []byte("1200"))
		c.resumed(s, time.Second)
		c.echo()
	}},
	{"resume-gone", "what is gone in the answer to open ends with lease_lost, nothing is sent for it; the others go on", func(c *env) {
		s := c.worker()
		t, u, v := c.running("sleep", "20000"), c.running("stubborn", "1500"), c.running("sleep", "2500")
		c.locked(func() { t.gone, u.gone = true, true })
		c.stopping(s)
		if e := c.told(t, time.Second); e.Kind != "lease_lost" {
			c.fail("kind %q, not lease_lost", e.Kind)
		}
		c.goesOn(s, v, time.Second)
		c.pause(500 * time.Millisecond)
		c.nothingSent(t)
		c.nothingSent(u)
	}},
	{"resume-gone-completing", "what is gone in the answer to open while its complete is not answered is dropped", func(c *env) {
		s := c.worker()
		c.hook(func(r *request) bool { return r.op == "complete" && r.sess == s })
		t := c.give("echo", "x")
		c.outcome(t, 3*time.Second)
		c.locked(func() { t.gone = true })
		c.kill(s)
		c.resumed(s, 1500*time.Millisecond)
		c.echo()
		c.pause(10 * time.Second)
		onlyOnce(c, t)
	}},
	{"resume-gone-all", "nothing of the session can go on: all ends, and new tasks come", func(c *env) {
		s := c.worker()
		t, u := c.running("sleep", "20000"), c.running("sleep", "20000")
		c.locked(func() { t.gone, u.gone = true, true })
		c.kill(s)
		c.told(t, 2*time.Second)
		c.told(u, 2*time.Second)
		c.resumed(s, time.Second)
		c.echo()
	}},
	{"resume-slots", "after a move max is what is free beside the tasks that go on", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "2500")
		c.running("sleep", "2500")
		c.running("sleep", "2500")
		c.stopping(s)
		next := c.resumed(s, time.Second)
		c.until(time.Second, "a next with max 1", func() bool { return next.parked != nil && next.parked.next.Max == 1 })
		c.goesOn(s, t, time.Second)
	}},
	{"resume-again-and-again", "five moves in a row, a task runs through all of them", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "5000")
		u := c.running("beat", "90")
		for i := 0; i < 5; i++ {
			if i%2 == 0 {
				c.kill(s)
			} else {
				c.stopping(s)
			}
			s = c.resumed(s, 2*time.Second)
			c.pause(300 * time.Millisecond)
		}
		c.expectOutput(t, []byte("5000"))
		c.expectOutput(u, []byte("90"))
		c.pause(200 * time.Millisecond)
		onlyOnce(c, t)
		c.locked(func() {
			if t.sess != s || len(c.g.sessions) != 6 {
				c.fail("%d sessions, and the task in %s", len(c.g.sessions), t.sess.id)
			}
		})
	}},
	{"resume-open-unanswered", "an open that resumes and is not answered is repeated with the same session and claims", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "4500")
		lost := 0
		c.hook(func(r *request) bool {
			if r.op == "open" && lost < 2 {
				lost++
				return true
			}
			return false
		})
		c.kill(s)
		c.goesOn(s, t, 5500*time.Millisecond)
	}},
	{"resume-open-lost", "a session was opened, and the answer got lost: the one before it is resumed again", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "4500")
		c.hook(func(r *request) bool {
			if r.op == "open" && s.next == nil {
				c.g.opened(r)
				c.log.add("-- the answer is lost")
				return true
			}
			return false
		})
		c.kill(s)
		c.until(2*time.Second, "another session", func() bool { return s.next != nil })
		c.goesOn(s.next, t, 4*time.Second)
	}},
	{"resume-notice-inbox", "a notice to the inbox after a move ends the handler", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "20000")
		c.kill(s)
		c.resumed(s, 1500*time.Millisecond)
		c.cancel(t, "requested", "moved", 1000, true, false)
		c.expectCancelled(t, time.Second)
		if e := c.told(t, time.Second); e.Reason != "moved" {
			c.fail("reason %q", e.Reason)
		}
	}},
	{"resume-notice-old", "what the gateway before says of a task that was moved is ignored: it only knows that it has lost it", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "2500")
		c.stopping(s)
		c.resumed(s, time.Second)
		c.locked(func() {
			c.g.publish(s, notice{Claim: t.wire.Claim, Kind: "lease_lost", Reason: "lease_lost", GraceMs: 1000})
		})
		c.goesOn(s, t, time.Second)
	}},
	{"resume-notice-lost", "the same of a session whose open had no answer, as the connection was cut: it is no open that is repeated", func(c *env) {
		c.locked(func() { c.g.lossy = true })
		s := c.worker()
		t := c.running("sleep", "6000")
		c.hook(func(r *request) bool {
			if r.op == "open" && s.next == nil {
				c.g.opened(r)
				c.log.add("-- cut")
				c.net.cut()
				return true
			}
			return false
		})
		c.kill(s)
		c.until(2*time.Second, "another session", func() bool { return s.next != nil })
		lost := s.next
		c.resumed(lost, 4*time.Second)
		c.locked(func() {
			c.g.publish(lost, notice{Claim: t.wire.Claim, Kind: "lease_lost", Reason: "lease_lost", GraceMs: 1000})
		})
		c.goesOn(lost, t, time.Second)
	}},
	{"resume-notice-renew", "a cancellation during a move is told by the renewals after it", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "20000")
		c.kill(s)
		c.locked(func() { t.notice = &notice{Claim: t.wire.Claim, Kind: "timeout", GraceMs: 1000} })
		c.expectCancelled(t, 3*time.Second)
		if e := c.told(t, time.Second); e.Kind != "timeout" {
			c.fail("kind %q", e.Kind)
		}
	}},
	{"resume-heartbeat", "heartbeats that were not answered before a move come after it", func(c *env) {
		s := c.worker()
		begin := time.Time{}
		c.hook(func(r *request) bool {
			if r.op != "renew" || r.sess != s {
				return false
			}
			if len(r.renew.Running) > 0 && string(r.renew.Running[0].Details) == "3" {
				begin = r.at
			}
			r.refuse(statusUnavailable, "not now")
			return true
		})
		t := c.give("beat", "3")
		c.hookAlso(func(r *request) bool { // so that it stays in hand
			if r.op == "complete" {
				r.refuse(statusUnavailable, "not now")
			}
			return r.op == "complete"
		})
		c.until(4*time.Second, "the last heartbeat", func() bool { return !begin.IsZero() })
		c.locked(func() { t.beats = nil })
		c.kill(s)
		c.resumed(s, 2*time.Second)
		c.until(2*time.Second, "the heartbeat again", func() bool { return last(t.beats) == "3" })
		c.hook(nil)
		c.until(6*time.Second, "complete is taken", func() bool { return !t.answered.IsZero() })
	}},
	{"resume-crossing", "tasks in an answer to next that comes after open was sent come again in the new session, and run once", func(c *env) {
		c.locked(func() { c.g.lossy = true })
		s := c.worker()
		t := c.task("echo", "crossing")
		c.hook(func(r *request) bool {
			if r.op != "open" || s.next != nil {
				return false
			}
			c.g.all = append(c.g.all, t)
			if parked := s.parked; parked != nil {
				s.unpark()
				parked.give([]*task{t})
				time.AfterFunc(300*time.Millisecond, func() { c.locked(r.handle) })
				return true
			}
			return false
		})
		c.hookAlso(func(r *request) bool { return r.op == "renew" && r.sess == s })
		next := c.resumed(s, 5*time.Second)
		c.expectOutput(t, []byte("crossing"))
		c.pause(700 * time.Millisecond)
		onlyOnce(c, t)
		c.locked(func() {
			if t.sess != next {
				c.fail("it was completed in %s", t.sess.id)
			}
		})
		c.echo()
	}},
	{"resume-duplicate", "a claim that was completed before a move and comes again after it is ignored", func(c *env) {
		s := c.worker()
		t, u := c.running("echo", "once"), c.running("sleep", "1500")
		c.outcome(t, 5*time.Second)
		c.stopping(s)
		next := c.resumed(s, time.Second)
		again(c, next, t)
		again(c, next, u)
		c.expectOutput(u, []byte("1500"))
		c.pause(400 * time.Millisecond)
		onlyOnce(c, t)
		onlyOnce(c, u)
		c.echo()
	}},
	{"resume-terms", "lease, renew_ms, payload_max and subject are those of the session that is resumed in", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "3500")
		c.locked(func() {
			c.g.leaseMs, c.g.renewMs, c.g.payloadMax, c.g.prefix = 5000, 1000, 1000, "thole.conf.gateway.session.other_gw."
		})
		c.stopping(s)
		next := c.resumed(s, time.Second)
		begin := time.Now()
		c.pause(3 * time.Second)
		if n := c.count("renew", begin); n < 2 || n > 5 {
			c.fail("%d renewals in 3 s with renew_ms 1000", n)
		}
		if got := c.outcome(c.give("big", "1001"), 2*time.Second); got.Failure == nil {
			c.fail("the outcome of an output above the new payload_max is %s", short(got))
		}
		c.goesOn(s, t, time.Second)
		_ = next
	}},
	{"resume-backoff", "no gateway takes the worker: tried again with growing pauses, the task goes on", func(c *env) {
		lease(c, 12000, 300)
		s := c.worker()
		t := c.running("sleep", "6500")
		begin := time.Now()
		c.hook(func(r *request) bool {
			if r.op == "open" && time.Since(begin) < 3500*time.Millisecond {
				r.refuse(statusUnavailable, "not now")
				return true
			}
			return false
		})
		c.kill(s)
		c.pause(3400 * time.Millisecond)
		if n := c.count("open", begin); n > 9 || n < 3 {
			c.fail("%d opens in 3.4 s, not 3 to 9", n)
		}
		c.goesOn(s, t, 5*time.Second)
	}},
	{"resume-no-gateway", "the same when nobody answers an open", func(c *env) {
		lease(c, 12000, 300)
		s := c.worker()
		t := c.running("sleep", "6500")
		c.g.deaf()
		c.kill(s)
		c.pause(2500 * time.Millisecond)
		c.g.listen()
		c.goesOn(s, t, 6*time.Second)
	}},
	{"resume-invalid", "INVALID on an open that resumes: the worker says so and ends, exit code not 0", func(c *env) {
		s := c.worker()
		c.hook(func(r *request) bool {
			if r.op == "open" {
				r.refuse(statusInvalid, "not welcome any more")
			}
			return r.op == "open"
		})
		c.kill(s)
		refusedEnd(c)
	}},
	{"resume-busy-loop", "NOT_FOUND on all but open: no busy loop of opens", func(c *env) {
		c.startWorker()
		c.hook(func(r *request) bool {
			if r.op == "open" {
				return false
			}
			if r.sess != nil && len(c.g.sessions) < 400 && time.Since(c.g.sessions[0].opened) < 3*time.Second {
				r.sess.dead = true
				r.refuse(statusNotFound, "there is no such session")
				return true
			}
			return false
		})
		c.session(1)
		c.pause(3 * time.Second)
		c.locked(func() {
			if n := len(c.g.sessions); n > 20 {
				c.fail("%d sessions in 3 s", n)
			}
		})
		c.echo()
	}},
}

func last(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[len(list)-1]
}

// silence lets no open that resumes be answered: with a status, or not at all.
func (c *env) silence(status uint32) {
	c.hookAlso(func(r *request) bool {
		if r.op != "open" || r.open.Resume == "" {
			return false
		}
		if status != 0 {
			r.refuse(status, "not now")
		}
		return true
	})
}

// lostLease: the tasks end when the lease is over by the worker's clock, not before, nothing is sent for them, and then a new
// session is opened.
func lostLease(c *env, t, u *task, from func() time.Time) {
	leaseMs := time.Duration(c.g.leaseMs) * time.Millisecond
	c.locked(func() { u.maybe = true }) // its handler runs on
	e := c.told(t, 2*leaseMs+3*time.Second)
	if e.Kind != "lease_lost" {
		c.fail("kind %q, not lease_lost", e.Kind)
	}
	var over time.Duration
	c.locked(func() { over = e.at.Sub(from()) })
	if over < leaseMs-scaled(400*time.Millisecond) || over > leaseMs+scaled(700*time.Millisecond) {
		c.fail("the handler ended %v after what was answered last was sent, with a lease of %v", over, leaseMs)
	}
	c.until(8*time.Second, "a new session", func() bool {
		newest := c.g.sessions[len(c.g.sessions)-1]
		return newest.open.Resume == "" && len(c.g.sessions) > 1
	})
	c.hook(nil)
	c.echo()
	c.pause(1500 * time.Millisecond)
	c.nothingSent(t)
	c.nothingSent(u)
}

// losing has two tasks in hand of a session with a short lease.
func losing(c *env, stubborn string) (s *session, t, u *task, from func() time.Time) {
	lease(c, 2500, 300)
	s = c.worker()
	t, u = c.running("sleep", "20000"), c.running("stubborn", stubborn)
	return s, t, u, func() time.Time { return s.renewed }
}

var leaseCases = []testCase{
	{"lease-over-killed", "no responders, and no gateway takes the worker: all is lost after a lease, then a new session", func(c *env) {
		s, t, u, from := losing(c, "3500")
		c.silence(statusUnavailable)
		c.kill(s)
		lostLease(c, t, u, from)
	}},
	{"lease-over-not-found", "the same for NOT_FOUND", func(c *env) {
		s, t, u, from := losing(c, "3500")
		c.silence(statusNotFound)
		c.forget(s)
		lostLease(c, t, u, from)
	}},
	{"lease-over-silent", "the same when nothing is answered: a request that waits delays it not", func(c *env) {
		s, t, u, from := losing(c, "3500")
		c.mute(s)
		c.silence(0)
		lostLease(c, t, u, from)
	}},
	{"lease-over-no-gateway", "the same when nobody answers an open", func(c *env) {
		s, t, u, from := losing(c, "3500")
		c.g.deaf()
		c.kill(s)
		c.told(t, 6*time.Second)
		c.g.listen()
		lostLease(c, t, u, from)
	}},
	{"lease-over-refused", "the same when renewals are refused for a lease", func(c *env) {
		_, t, u, from := losing(c, "3500")
		c.hook(func(r *request) bool {
			if r.op == "renew" {
				r.refuse(statusUnavailable, "database away")
			}
			return r.op == "renew"
		})
		lostLease(c, t, u, from)
	}},
	{"lease-from-open", "the lease of a resumed session counts from when its open was sent", func(c *env) {
		s, t, u, _ := losing(c, "5500")
		c.hook(func(r *request) bool {
			if r.op == "open" && r.at.Sub(s.renewed) < 1200*time.Millisecond {
				r.refuse(statusUnavailable, "not now")
				return true
			}
			if r.op == "open" && s.next == nil { // a late answer
				_, answer := c.g.opened(r)
				time.AfterFunc(400*time.Millisecond, func() { c.locked(func() { r.answer(answer) }) })
				return true
			}
			return r.sess == s.next && r.sess != nil && r.op != "next" || r.op == "open" && r.open.Resume != ""
		})
		c.kill(s)
		c.resumed(s, 3*time.Second)
		lostLease(c, t, u, func() time.Time { return s.next.renewed })
		c.pause(1500 * time.Millisecond)
		c.nothingSent(u)
	}},
	{"lease-late-answer", "an answer to open after the lease is over comes too late: it is not used", func(c *env) {
		s, t, u, from := losing(c, "3500")
		var late *request
		c.hook(func(r *request) bool {
			if r.op == "open" && (late == nil || r.open.Resume != "") {
				late = r
				return true
			}
			return r.op == "open" && r.at.Sub(s.renewed) < 4*time.Second
		})
		c.kill(s)
		c.told(t, 5*time.Second)
		c.locked(func() {
			if late != nil {
				late.answer(sessionOpened{Session: "late", Subject: "thole.conf.gateway.session.late", LeaseMs: 2500, RenewMs: 300, PayloadMax: 1000})
			}
		})
		c.pause(scaled(400 * time.Millisecond))
		lostLease(c, t, u, from)
	}},
	{"lease-over-completing", "an outcome that could not be delivered within the lease is dropped", func(c *env) {
		lease(c, 2000, 300)
		s := c.worker()
		c.hook(func(r *request) bool { return r.op == "complete" && r.sess == s })
		t := c.give("echo", "x")
		c.outcome(t, 3*time.Second)
		c.silence(statusUnavailable)
		c.kill(s)
		c.until(6*time.Second, "a new session", func() bool { return len(c.g.sessions) > 1 })
		c.hook(nil)
		c.echo()
		c.pause(2 * time.Second)
		onlyOnce(c, t)
	}},
	{"lease-same-claim", "a new session may have a claim of the same name as a lost one", func(c *env) {
		s, t, u, from := losing(c, "3500")
		c.silence(statusUnavailable)
		c.kill(s)
		lostLease(c, t, u, from)
		v := c.task("echo", "anew")
		v.wire.Claim = t.wire.Claim
		c.enqueue(v)
		c.expectOutput(v, []byte("anew"))
	}},
	{"lease-idle", "nothing in hand, and no gateway takes the worker for longer than a lease: a new session", func(c *env) {
		lease(c, 2000, 300)
		s := c.worker()
		c.echo()
		c.silence(statusUnavailable)
		c.kill(s)
		c.until(6*time.Second, "a new session", func() bool { return len(c.g.sessions) > 1 })
		c.echo()
	}},
}

var closeMoveCases = []testCase{
	{"close-killed", "the gateway dies while the worker stops: resumed elsewhere, and closed there with what is left of the limit", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "2200")
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		c.pause(500 * time.Millisecond)
		c.kill(s)
		c.until(3*time.Second, "close in another session", func() bool { return s.next != nil && s.next.closing != nil })
		if got := c.outcome(t, 4*time.Second); string(got.Output) != "2200" {
			c.fail("the outcome is %s", short(got))
		}
		c.ends(3 * time.Second)
		c.locked(func() {
			if limit := s.next.closing.close.LimitMs; limit > 2600 || limit < 500 {
				c.fail("limit_ms %d in the second session", limit)
			}
			if s.next.counts["next"] > 0 {
				c.fail("next while the worker stops")
			}
		})
		if c.d.code != 0 {
			c.fail("exit code %d", c.d.code)
		}
	}},
	{"close-moving", "SIGTERM while no gateway takes the worker: what runs goes on, is moved and closed", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "2500")
		begin := time.Now()
		c.hook(func(r *request) bool {
			if r.op == "open" && time.Since(begin) < 1500*time.Millisecond {
				r.refuse(statusUnavailable, "not now")
				return true
			}
			return false
		})
		c.kill(s)
		c.until(2*time.Second, "a refused open", func() bool { return c.g.counts["open"] > 1 })
		c.d.signal(syscall.SIGTERM)
		if got := c.outcome(t, 6*time.Second); string(got.Output) != "2500" {
			c.fail("the outcome is %s", short(got))
		}
		c.ends(4 * time.Second)
		if s.next == nil || !s.next.closed || c.d.code != 0 {
			c.fail("the second session was not closed, or exit code %d", c.d.code)
		}
	}},
	{"close-lease-over", "SIGTERM, and no gateway answers any more: what runs is lost after a lease, and the worker ends", func(c *env) {
		s, t, u, _ := losing(c, "3500")
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		c.g.deaf()
		c.kill(s)
		c.pause(time.Second)
		if c.d.ended() {
			c.fail("the driver ended before the lease was over")
		}
		c.ends(5 * time.Second)
		c.nothingSent(t)
		c.nothingSent(u)
	}},
	{"close-not-found-held", "NOT_FOUND on close with a task in hand: resumed, and closed there", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "1500")
		c.hook(func(r *request) bool {
			if r.op == "close" && r.sess == s {
				s.dead = true
			}
			return false
		})
		c.d.signal(syscall.SIGTERM)
		c.until(3*time.Second, "close in another session", func() bool { return s.next != nil && s.next.closing != nil })
		if got := c.outcome(t, 4*time.Second); string(got.Output) != "1500" {
			c.fail("the outcome is %s", short(got))
		}
		c.ends(3 * time.Second)
	}},
	{"close-completing", "the gateway dies while the worker stops and a complete is not answered: it is repeated elsewhere", func(c *env) {
		s := c.worker()
		c.hook(func(r *request) bool { return r.op == "complete" && r.sess == s })
		t := c.give("echo", "x")
		c.outcome(t, 3*time.Second)
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		c.kill(s)
		c.ends(4 * time.Second)
		c.locked(func() {
			if t.answered.IsZero() || s.next == nil || !s.next.closed {
				c.fail("it was not completed in another session that was closed")
			}
		})
	}},
	{"close-gone", "the gateway dies while the worker stops, and what runs is gone: it ends, and so does the worker", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "20000")
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		c.locked(func() { t.gone = true })
		c.kill(s)
		c.ends(4 * time.Second)
		c.nothingSent(t)
	}},
	{"close-limit-moved", "the limit is that of the stop, not of the session: shutdown comes in time after a move", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "20000")
		begin := time.Now()
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		c.pause(1500 * time.Millisecond)
		c.kill(s)
		c.expectCancelled(t, 5*time.Second)
		if e := c.told(t, time.Second); e.Kind != "shutdown" || e.at.Sub(begin) > scaled(4200*time.Millisecond) {
			c.fail("kind %q, %v after SIGTERM with a limit of 3 s", e.Kind, e.at.Sub(begin))
		}
		c.ends(3 * time.Second)
	}},
}
