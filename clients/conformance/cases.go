package main

import (
	"os"
	"syscall"
	"time"
)

func cases() []testCase {
	var all []testCase
	all = append(all, openCases...)
	all = append(all, taskCases...)
	all = append(all, outcomeCases...)
	all = append(all, renewCases...)
	all = append(all, cancelCases...)
	all = append(all, completeCases...)
	all = append(all, resumeCases...)
	all = append(all, leaseCases...)
	all = append(all, networkCases...)
	all = append(all, closeCases...)
	all = append(all, closeMoveCases...)
	all = append(all, handlerCases...)
	return append(append(append(all, clientCases...), senderCases...), viewCases...)
}

var activities = []string{"echo", "fail", "sleep", "stubborn", "beat", "key", "resume", "big", "panic", "bytes"}

var openCases = []testCase{
	{"open-fields", "open has the name, the slots, the activities, the host and an inbox that is subscribed", func(c *env) {
		s := c.worker()
		if s.open.Worker != "conf-worker" || s.open.Slots != 4 {
			c.fail("worker %q with %d slots", s.open.Worker, s.open.Slots)
		}
		if host, err := os.Hostname(); err == nil && s.open.Host != host[:min(len(host), 64)] {
			c.fail("host %q, not %q, at most 64 bytes of it", s.open.Host, host)
		}
		known := map[string]bool{}
		for _, name := range s.open.Activities {
			known[name] = true
		}
		for _, name := range activities {
			if !known[name] {
				c.fail("activity %s is not in open", name)
			}
		}
		c.echo()
	}},
	{"open-invalid", "INVALID on open: the worker says so and ends, exit code not 0", func(c *env) { openRefused(c, statusInvalid) }},
	{"open-denied", "DENIED on open: the worker says so and ends, exit code not 0", func(c *env) { openRefused(c, statusDenied) }},
	{"open-unavailable", "UNAVAILABLE on open: tried again, with growing pauses", func(c *env) {
		begin := time.Time{}
		c.hook(func(r *request) bool {
			if begin.IsZero() {
				begin = r.at
			}
			if r.op == "open" && time.Since(begin) < 4*time.Second {
				r.refuse(statusUnavailable, "not now")
				return true
			}
			return false
		})
		c.startWorker()
		c.until(forStart, "a first open", func() bool { return !begin.IsZero() })
		c.pause(4 * time.Second)
		if n := c.count("open", begin); n > 10 || n < 3 {
			c.fail("%d requests in 4 s, not 3 to 10", n)
		}
		c.session(1)
		c.echo()
	}},
	{"open-no-gateway", "no responders: tried again, not in a busy loop, until a gateway runs", func(c *env) {
		c.g.deaf()
		c.startWorker()
		c.until(forStart, "the driver connects", func() bool { return c.net.nats.NumClients() > 1 })
		c.pause(300 * time.Millisecond)
		before, _ := c.net.nats.Varz(nil)
		c.pause(3 * time.Second)
		after, _ := c.net.nats.Varz(nil)
		if n := after.InMsgs - before.InMsgs; n > 16 {
			c.fail("%d messages in 3 s while no gateway runs", n)
		}
		if c.d.ended() {
			c.fatal("the driver has ended")
		}
		c.g.listen()
		c.session(1)
		c.echo()
	}},
	{"open-unanswered", "an open without an answer is repeated", func(c *env) {
		c.hook(func(r *request) bool { return r.op == "open" && r.n == 1 })
		c.startWorker()
		c.until(forStart, "a first open", func() bool { return c.g.counts["open"] > 0 })
		c.until(16*time.Second, "another open", func() bool { return c.g.counts["open"] > 1 })
		c.session(1)
		c.echo()
	}},
	{"open-stop", "SIGTERM while no gateway takes the worker: it ends at once, with 0", func(c *env) {
		c.hook(func(r *request) bool {
			r.refuse(statusUnavailable, "not now")
			return true
		})
		c.startWorker()
		c.until(forStart, "some opens", func() bool { return c.g.counts["open"] > 2 })
		c.stop(3 * time.Second)
	}},
	{"open-subject", "the operations go to the subject of the answer, whatever it looks like", func(c *env) {
		c.locked(func() { c.g.prefix = "thole.conf.gateway.session.gw-2.x_y." })
		c.worker()
		c.echo()
	}},
}

func openRefused(c *env, status uint32) {
	c.hook(func(r *request) bool {
		r.refuse(status, "this worker is not welcome: ünï")
		return true
	})
	c.startWorker()
	c.until(forStart, "a first open", func() bool { return c.g.counts["open"] > 0 })
	refusedEnd(c)
	c.locked(func() {
		if c.g.counts["open"] > 1 {
			c.fail("%d opens after the first was refused for good", c.g.counts["open"]-1)
		}
	})
}

func refusedEnd(c *env) {
	c.ends(5 * time.Second)
	if c.d.code == 0 {
		c.fail("exit code 0 after an error")
	}
	if text := c.d.errorText(); !contains(text, "not welcome") {
		c.fail("standard error does not have the gateway's text: %.200q", text)
	}
}

var closeCases = []testCase{
	{"close-idle", "SIGTERM: close with limit_ms 3000, no next after it, exit code 0 when it is answered", func(c *env) {
		s := c.worker()
		c.stop(3 * time.Second)
		c.locked(func() {
			if s.closing == nil || s.closing.close.LimitMs > 3000 || s.closing.close.LimitMs < 2900 {
				c.fail("close is not there, or its limit_ms is not 3000")
			}
		})
	}},
	{"close-waits", "SIGTERM waits for the tasks that run: their outcomes come, renewals go on", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "1500")
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		since := time.Now()
		got := c.outcome(t, 4*time.Second)
		if got.Cancelled || string(got.Output) != "1500" {
			c.fail("the outcome is %s", short(got))
		}
		if n := c.count("renew", since); n < 2 {
			c.fail("%d renewals in the 1.3 s in which the task ran on", n)
		}
		c.ends(3 * time.Second)
		if c.d.code != 0 {
			c.fail("exit code %d", c.d.code)
		}
	}},
	{"close-limit", "what runs after limit_ms gets the notice shutdown, and ends", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "20000")
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		c.expectCancelled(t, 5*time.Second)
		if e := c.told(t, time.Second); e.Kind != "shutdown" {
			c.fail("kind %q, not shutdown", e.Kind)
		}
		c.ends(3 * time.Second)
	}},
	{"close-success", "a success in the grace period of shutdown is reported as one", func(c *env) {
		s := c.worker()
		t := c.running("stubborn", "4000")
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		if got := c.outcome(t, 6*time.Second); string(got.Output) != "done" || got.Cancelled || got.Failure != nil {
			c.fail("the outcome is %s", short(got))
		}
		c.ends(3 * time.Second)
	}},
	{"close-crossing", "tasks in an answer to next that crosses close are run", func(c *env) {
		s := c.worker()
		t := c.task("echo", "late")
		var waiting *request
		c.locked(func() { // taken out of the gateway, which would answer it when close comes
			c.g.all = append(c.g.all, t)
			waiting = s.parked
			s.unpark()
		})
		c.hook(func(r *request) bool {
			if r.op == "close" && t.given.IsZero() {
				waiting.give([]*task{t})
			}
			return false
		})
		c.d.signal(syscall.SIGTERM)
		c.outcome(t, 3*time.Second)
		c.ends(5 * time.Second)
	}},
	{"close-not-found", "the session is gone when close comes: the worker ends all the same", func(c *env) {
		s := c.worker()
		c.locked(func() { s.dead = true })
		c.hook(func(r *request) bool {
			if r.op == "open" || r.op != "close" && r.op != "renew" && r.op != "next" {
				return false
			}
			r.refuse(statusNotFound, "there is no such session")
			return true
		})
		c.d.signal(syscall.SIGTERM)
		c.ends(8 * time.Second)
	}},
	{"close-unanswered", "a close without an answer, nothing in hand: the worker ends, at the latest after limit_ms and 10 s", func(c *env) {
		c.worker()
		c.hook(func(r *request) bool { return r.op == "close" })
		c.d.signal(syscall.SIGTERM)
		c.ends(16 * time.Second)
	}},
	{"close-twice", "a second SIGTERM ends the worker at once", func(c *env) {
		s := c.worker()
		c.running("stubborn", "20000")
		c.d.signal(syscall.SIGTERM)
		c.until(2*time.Second, "close", func() bool { return s.closing != nil })
		c.pause(100 * time.Millisecond)
		c.d.signal(syscall.SIGTERM)
		c.ends(1500 * time.Millisecond)
	}},
}
