package main

import (
	"fmt"
	"syscall"
	"time"
)

var completeCases = []testCase{
	{"complete-fenced", "14 on complete is final: it is not repeated", func(c *env) {
		c.worker()
		c.hook(func(r *request) bool {
			if r.op == "complete" {
				r.answer(r.refused(statusFenced, "the claim is gone"))
				return true
			}
			return false
		})
		t := c.give("echo", "x")
		c.outcome(t, 5*time.Second)
		c.hook(nil)
		c.echo()
		c.pause(1500 * time.Millisecond)
		onlyOnce(c, t)
	}},
	{"complete-unanswered", "complete without an answer is repeated identically after about 10 s, in this session or in one that resumes it", func(c *env) {
		c.worker()
		t := c.give("fail", "final")
		dropped := false
		c.hook(func(r *request) bool {
			if r.op == "complete" && !dropped {
				dropped = true
				return true
			}
			return false
		})
		c.until(14*time.Second, "complete again", func() bool { return len(t.outcomes) > 1 })
		c.locked(func() {
			if gap := t.times[1].Sub(t.times[0]); gap < time.Second {
				c.fail("repeated after %v", gap)
			}
		})
		c.hook(nil)
		c.echo()
	}},
	{"complete-late", "an answer to complete that comes after 4 s: repeated or not, the task ends once, other tasks run meanwhile", func(c *env) {
		c.worker()
		t := c.give("echo", "x")
		c.hook(func(r *request) bool {
			if r.op == "complete" && r.complete.Outcomes[0].Claim == t.wire.Claim {
				time.AfterFunc(4*time.Second, func() { c.locked(r.handle) })
				return true
			}
			return false
		})
		c.outcome(t, 3*time.Second)
		c.echo()
		c.until(6*time.Second, "the answer", func() bool { return !t.answered.IsZero() })
		c.echo()
	}},
	{"complete-unavailable", "another status of complete: repeated identically after a pause", func(c *env) {
		c.worker()
		t := c.give("echo", "x")
		begin := time.Time{}
		c.hook(func(r *request) bool {
			if r.op != "complete" {
				return false
			}
			if begin.IsZero() {
				begin = r.at
			}
			if time.Since(begin) > 2500*time.Millisecond {
				return false
			}
			r.refuse(statusUnavailable, "database away")
			return true
		})
		c.outcome(t, 3*time.Second)
		c.until(9*time.Second, "complete is taken", func() bool { return !t.answered.IsZero() })
		if n := len(t.outcomes); n < 3 || n > 12 {
			c.fail("%d requests in 2.5 s, not 3 to 12", n)
		}
		c.echo()
	}},
	{"complete-many", "forty short tasks are completed once each", func(c *env) {
		c.worker()
		var list []*task
		for i := 0; i < 40; i++ {
			list = append(list, c.task("bytes", fmt.Sprintf("ab%d", i%10)))
		}
		c.enqueue(list...)
		for i, t := range list {
			c.expectOutput(t, []byte(fmt.Sprintf("%dba", i%10)))
		}
		c.pause(300 * time.Millisecond)
		for _, t := range list {
			onlyOnce(c, t)
		}
	}},
}

func (r *request) refused(status uint32, text string) tasksCompleted {
	var answer tasksCompleted
	for _, o := range r.complete.Outcomes {
		answer.Results = append(answer.Results, outcomeResult{o.Claim, status, text})
		if t := r.sess.find(o.Claim); t != nil {
			t.answered = time.Now()
		}
	}
	return answer
}

var networkCases = []testCase{
	{"restart", "the NATS server restarts: the task goes on, new tasks come", func(c *env) {
		c.locked(func() { c.g.lossy, c.g.leaseMs = true, 15000 })
		c.worker()
		t := c.running("sleep", "3000")
		restart(c, 700*time.Millisecond)
		if got := c.outcome(t, 20*time.Second); string(got.Output) != "3000" {
			c.fail("the outcome is %s", short(got))
		}
		u := c.give("echo", "after")
		c.outcome(u, 80*time.Second) // a next that got lost may be asked again after wait_ms and 5 s
		v := c.running("sleep", "20000")
		c.cancel(v, "requested", "", 1000, true, false)
		c.expectCancelled(v, 3*time.Second)
	}},
	{"cut", "the connection is cut three times while tasks run", func(c *env) {
		c.locked(func() { c.g.lossy, c.g.leaseMs = true, 15000 })
		c.worker()
		t := c.running("sleep", "3000")
		for i := 0; i < 3; i++ {
			c.log.add("-- cut")
			c.net.cut()
			c.pause(900 * time.Millisecond)
		}
		if got := c.outcome(t, 25*time.Second); string(got.Output) != "3000" {
			c.fail("the outcome is %s", short(got))
		}
		c.outcome(c.give("echo", "after"), 80*time.Second)
	}},
	{"cut-completing", "the connection is cut when complete comes: it is repeated", func(c *env) {
		c.locked(func() { c.g.lossy, c.g.leaseMs = true, 30000 })
		c.worker()
		t := c.give("echo", "x")
		dropped := false
		c.hook(func(r *request) bool {
			if r.op == "complete" && !dropped {
				dropped = true
				c.net.cut()
				return true
			}
			return false
		})
		c.until(20*time.Second, "complete again", func() bool { return !t.answered.IsZero() })
		if got := c.outcome(t, time.Second); string(got.Output) != "x" {
			c.fail("the outcome is %s", short(got))
		}
	}},
	{"freeze-short", "nothing passes for half a lease: the tasks go on", func(c *env) {
		c.locked(func() { c.g.lossy, c.g.leaseMs = true, 6000 })
		c.worker()
		t := c.running("sleep", "4000")
		c.log.add("-- frozen")
		c.net.freeze(true)
		c.pause(2500 * time.Millisecond)
		c.net.freeze(false)
		c.log.add("-- not frozen any more")
		if got := c.outcome(t, 12*time.Second); string(got.Output) != "4000" {
			c.fail("the outcome is %s", short(got))
		}
	}},
	{"freeze-long", "nothing passes for longer than a lease: the handlers end, nothing is sent for them, and a new session is opened", func(c *env) {
		c.locked(func() { c.g.lossy = true })
		lease(c, 2500, 300)
		s := c.worker()
		t := c.running("sleep", "20000")
		u := c.running("stubborn", "3500")
		c.log.add("-- frozen")
		c.net.freeze(true)
		e := c.told(t, 5*time.Second)
		if e.Kind != "lease_lost" {
			c.fail("kind %q, not lease_lost", e.Kind)
		}
		c.pause(500 * time.Millisecond)
		c.locked(func() { s.dead = true; t.lose(); u.lose() })
		c.net.freeze(false)
		c.log.add("-- not frozen any more")
		c.until(25*time.Second, "a new session", func() bool { return len(c.g.sessions) > 1 })
		c.locked(func() { c.g.holds = 0 })
		c.outcome(c.give("echo", "after"), 80*time.Second)
		c.pause(time.Second)
		c.nothingSent(t)
		c.nothingSent(u)
	}},
	{"paused", "the process is stopped for longer than a lease, and its tasks end meanwhile: nothing is sent for them", func(c *env) {
		c.locked(func() { c.g.lossy = true })
		lease(c, 2000, 300)
		s := c.worker()
		list := []*task{c.task("sleep", "1500"), c.task("sleep", "1500"), c.task("stubborn", "1500"), c.task("sleep", "1500")}
		c.enqueue(list...)
		c.until(3*time.Second, "all are handed out", func() bool { return len(s.tasks) == 4 })
		c.pause(300 * time.Millisecond)
		c.d.signal(syscall.SIGSTOP)
		c.pause(2800 * time.Millisecond)
		c.locked(func() {
			s.dead = true
			for _, t := range list {
				t.lose()
			}
		})
		c.d.signal(syscall.SIGCONT)
		c.session(2)
		c.echo()
		for _, t := range list {
			c.nothingSent(t)
		}
	}},
	{"twice", "each answer comes twice", func(c *env) {
		c.locked(func() { c.g.twice = true })
		c.worker()
		chaos(c)
	}},
	{"delayed", "answers come late and out of order", func(c *env) {
		c.locked(func() { c.g.jitter = 250 * time.Millisecond })
		c.worker()
		chaos(c)
	}},
	{"lost-answers", "every fifth answer is lost", func(c *env) {
		c.locked(func() { c.g.lossy = true })
		n := 0
		c.worker()
		c.hook(func(r *request) bool {
			if r.op == "complete" || r.op == "renew" {
				if n++; n%5 == 0 {
					c.log.add("-- the answer is lost")
					if r.op == "complete" {
						r.completed() // it is stored
						for _, o := range r.complete.Outcomes {
							r.sess.find(o.Claim).answered = time.Time{} // but not known to be
						}
					}
					return true
				}
			}
			return false
		})
		chaos(c)
		c.hook(nil)
		c.until(14*time.Second, "all answers", func() bool {
			for _, t := range c.g.all {
				if t.answered.IsZero() {
					return false
				}
			}
			return true
		})
	}},
	{"lost-next", "an answer to next is lost: its tasks come again, and run once", func(c *env) {
		c.locked(func() { c.g.lossy = true })
		s := c.worker()
		t := c.task("echo", "x")
		c.locked(func() {
			c.g.all = append(c.g.all, t)
			s.tasks = append(s.tasks, t)
			t.sess, t.given = s, time.Now()
			s.unpark() // and is not answered
		})
		c.outcome(t, 80*time.Second)
		c.pause(300 * time.Millisecond)
		onlyOnce(c, t)
	}},
	{"broken-answers", "the first answer to each operation is cut in the middle: tried again", func(c *env) {
		c.locked(func() { c.g.firstCut, c.g.lossy = true, true })
		c.startWorker()
		c.until(forStart, "a session that is used", func() bool {
			n := len(c.g.sessions)
			return n > 0 && c.g.sessions[n-1].counts["renew"] > 1
		})
		var list []*task
		for i := 0; i < 6; i++ {
			list = append(list, c.task("echo", "x"))
		}
		c.enqueue(list...)
		for _, t := range list {
			c.outcome(t, 80*time.Second)
		}
	}},
	{"garbage", "answers that are no JSON object", func(c *env) {
		c.locked(func() { c.g.lossy = true })
		c.worker()
		texts := []string{"", "null", "[]", "7", "\"x\"", "\xff\xfe", "<html>", "{\"status\":\"no\"}", "{\"tasks\":7}", "{\"results\":7,\"cancelled\":7,\"tasks\":[7]}"}
		n := 0
		c.hook(func(r *request) bool {
			if (r.op == "renew" || r.op == "complete") && n < len(texts) {
				n++
				r.answerRaw([]byte(texts[n-1]), 0, "")
				return true
			}
			return false
		})
		t := c.give("echo", "x")
		c.until(40*time.Second, "all of the garbage is sent", func() bool { return n == len(texts) })
		c.until(15*time.Second, "complete is taken", func() bool { return !t.answered.IsZero() })
		c.echo()
	}},
	{"future-fields", "answers and notices have fields that nobody knows", func(c *env) {
		c.locked(func() { c.g.decorate = true })
		c.worker()
		chaos(c)
		t := c.running("sleep", "20000")
		c.cancel(t, "requested", "r", 1000, true, false)
		c.expectCancelled(t, 2*time.Second)
		u := c.running("sleep", "20000")
		c.cancel(u, "requested", "r", 1000, false, true)
		c.expectCancelled(u, 2*time.Second)
	}},
}

func restart(c *env, away time.Duration) {
	c.log.add("-- the NATS server stops")
	c.net.stopServer()
	c.pause(away)
	if err := c.net.startServer(); err != nil {
		c.fatal("%v", err)
	}
	c.log.add("-- the NATS server is back")
	c.until(10*time.Second, "the kit connects", func() bool { return c.g.nc.IsConnected() })
	c.locked(func() { c.net.cuts++ })
	c.g.nc.Flush()
}

// chaos is a mixture of tasks, each of which must be completed as it should.
func chaos(c *env) {
	var echoes, cancelled, failing []*task
	var list []*task
	for i := 0; i < 6; i++ {
		e, s, f := c.task("echo", fmt.Sprintf("in %d", i)), c.task("sleep", "15000"), c.task("fail", "")
		echoes, cancelled, failing = append(echoes, e), append(cancelled, s), append(failing, f)
		list = append(list, e, s, f)
	}
	c.enqueue(list...)
	for _, t := range cancelled {
		c.until(15*time.Second, "it is handed out", func() bool { return !t.given.IsZero() })
		c.cancel(t, "requested", "", 1000, true, true)
	}
	for i, t := range echoes {
		if got := c.outcome(t, 15*time.Second); string(got.Output) != fmt.Sprintf("in %d", i) {
			c.fail("echo %d: %s", i, short(got))
		}
	}
	for _, t := range failing {
		if got := c.outcome(t, 15*time.Second); got.Failure == nil {
			c.fail("fail: %s", short(got))
		}
	}
	for _, t := range cancelled {
		if got := c.outcome(t, 15*time.Second); !got.Cancelled {
			c.fail("sleep: %s", short(got))
		}
	}
}
