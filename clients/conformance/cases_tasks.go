package main

import (
	"bytes"
	"strings"
	"time"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

var taskCases = []testCase{
	{"echo", "a task runs, its outcome comes", func(c *env) {
		c.worker()
		c.echo()
		c.echo()
	}},
	{"payload-empty", "an empty input is an empty output", func(c *env) {
		c.worker()
		c.expectOutput(c.give("echo", ""), nil)
	}},
	{"payload-binary", "all bytes pass unchanged", func(c *env) {
		c.worker()
		var in, out []byte
		for i := 0; i < 256; i++ {
			in, out = append(in, byte(i)), append(out, byte(255-i))
		}
		c.expectOutput(c.give("bytes", string(in)), out)
		c.expectOutput(c.give("echo", "\xff\x00\xfe"), []byte("\xff\x00\xfe"))
	}},
	{"payload-big", "payloads of payload_max pass, in and out", func(c *env) {
		c.worker()
		c.expectOutput(c.give("big", "262144"), bytes.Repeat([]byte("x"), 262144))
		big := strings.Repeat("0123456789abcdef", 16384)
		c.expectOutput(c.give("echo", big), []byte(big))
	}},
	{"payload-too-big", "an output above payload_max is a failed task, and the worker goes on", func(c *env) {
		c.worker()
		for _, n := range []string{"262145", "3000000"} {
			if got := c.outcome(c.give("big", n), 8*time.Second); got.Failure == nil || got.Failure.Text == "" {
				c.fail("the outcome is %s", short(got))
			}
		}
		c.echo()
	}},
	{"payload-many", "four big outputs at once pass", func(c *env) {
		c.worker()
		var list []*task
		for i := 0; i < 8; i++ {
			list = append(list, c.task("big", "262144"))
		}
		c.enqueue(list...)
		for _, t := range list {
			c.expectOutput(t, bytes.Repeat([]byte("x"), 262144))
		}
	}},
	{"unicode", "claims, ids and texts that are not ASCII", func(c *env) {
		c.worker()
		t := c.task("echo", "grüße 漢字 🎉")
		t.wire.Claim, t.wire.Instance = "c/ü \"quoted\" \\ 漢\u2028🎉", "bestellung-ä/ö 漢字"
		t.wire.Key = "schlüssel 🔑"
		c.enqueue(t)
		c.expectOutput(t, []byte("grüße 漢字 🎉"))
		u := c.task("sleep", "9000")
		u.wire.Claim, u.wire.Instance = "ü\t1", "ñ \"x\""
		c.enqueue(u)
		c.until(5*time.Second, "it runs", func() bool { return !u.given.IsZero() })
		c.cancel(u, "requested", "warum? 漢", 500, true, true)
		c.expectCancelled(u, 3*time.Second)
		if e := c.told(u, time.Second); e.Reason != "warum? 漢" {
			c.fail("reason %q", e.Reason)
		}
	}},
	{"fail", "a failure has its text and type, and is not final", func(c *env) {
		c.worker()
		expectFailure(c, c.give("fail", ""), false)
	}},
	{"fail-final", "a final failure says so", func(c *env) {
		c.worker()
		expectFailure(c, c.give("fail", "final"), true)
	}},
	{"panic", "a handler that throws is a failed task, and the worker goes on", func(c *env) {
		c.worker()
		for i := 0; i < 6; i++ { // more than slots: none is left taken
			got := c.outcome(c.give("panic", ""), 8*time.Second)
			if got.Failure == nil || got.Failure.Text == "" || got.Failure.Final {
				c.fail("the outcome is %s", short(got))
			}
		}
		c.echo()
	}},
	{"unknown-activity", "a task that the worker does not know is a failed one, or left alone; the worker goes on", func(c *env) {
		c.worker()
		t := c.give("nosuch", "")
		c.pause(500 * time.Millisecond)
		c.locked(func() {
			if len(t.outcomes) > 0 && t.outcomes[0].Failure == nil {
				c.fail("the outcome is %s", short(t.outcomes[0]))
			}
			if len(t.outcomes) == 0 {
				t.maybe, t.lost, t.answered = true, true, time.Now()
			}
		})
		c.echo()
	}},
	{"key", "the idempotency key reaches the handler", func(c *env) {
		c.worker()
		t := c.give("key", "")
		c.expectOutput(t, []byte(t.wire.Key))
	}},
	{"task-trace", "the trace of the start reaches the handler", func(c *env) {
		c.worker()
		t := c.task("trace", "")
		t.wire.Traceparent, t.wire.Tracestate = trace, "a=b"
		c.enqueue(t)
		c.expectOutput(t, []byte(trace+" a=b"))
		c.expectOutput(c.give("trace", ""), []byte(" "))
	}},
	{"resume", "details of the heartbeat before reach the handler", func(c *env) {
		c.worker()
		t := c.task("resume", "")
		t.wire.Details, t.wire.Attempt = []byte("at 7\x00\xff"), 2
		c.enqueue(t)
		c.expectOutput(t, []byte("at 7\x00\xff"))
		c.expectOutput(c.give("resume", ""), nil)
	}},
	{"next-again", "after an answer without tasks next is asked again", func(c *env) {
		c.startWorker()
		c.hook(func(r *request) bool {
			if r.op != "next" || r.n > 5 {
				return false
			}
			time.AfterFunc(50*time.Millisecond, func() { c.locked(func() { r.answer(tasks{}) }) })
			return true
		})
		s := c.session(1)
		c.until(5*time.Second, "six times next", func() bool { return s.counts["next"] >= 6 })
		c.echo()
	}},
	{"next-max", "max is the number of free slots, and next is not asked when none is free", func(c *env) {
		s := c.worker()
		c.locked(func() {
			if s.parked.next.Max != 4 {
				c.fail("the first next has max %d, not 4", s.parked.next.Max)
			}
		})
		c.running("sleep", "1500")
		c.until(2*time.Second, "a next with max 3", func() bool { return s.parked != nil && s.parked.next.Max == 3 })
		c.enqueue(c.task("sleep", "1200"), c.task("sleep", "1200"), c.task("sleep", "1200"))
		c.pause(300 * time.Millisecond)
		c.locked(func() {
			if s.parked != nil {
				c.fail("next with max %d while all slots are taken", s.parked.next.Max)
			}
		})
		c.until(4*time.Second, "all slots free again", func() bool { return s.parked != nil })
	}},
	{"slots", "never more tasks than slots, and all of twelve end", func(c *env) {
		c.worker()
		var list []*task
		for i := 0; i < 12; i++ {
			list = append(list, c.task("sleep", "300"))
		}
		begin := time.Now()
		c.enqueue(list...)
		for _, t := range list {
			c.outcome(t, 10*time.Second)
		}
		if took := time.Since(begin); took < 880*time.Millisecond {
			c.fail("12 tasks of 300 ms in 4 slots took %v: more than 4 ran", took)
		} else if took > scaled(3*time.Second) {
			c.fail("12 tasks of 300 ms in 4 slots took %v: slots stay empty", took)
		}
	}},
	{"next-unanswered", "next without an answer is asked again, not before wait_ms and not later than 10 s after it", func(c *env) {
		c.startWorker()
		c.locked(func() { c.g.lossy = true })
		dropped := false
		c.hook(func(r *request) bool {
			first := r.op == "next" && !dropped
			dropped = dropped || first
			return first
		})
		s := c.session(1)
		var first *request
		c.until(5*time.Second, "next", func() bool {
			for _, r := range c.g.requests {
				if r.op == "next" {
					first = r
				}
			}
			return first != nil
		})
		wait := time.Duration(first.next.WaitMs) * time.Millisecond
		c.until(wait+12*time.Second, "another next", func() bool { return s.counts["next"] > 1 || s.next != nil && s.next.counts["next"] > 0 })
		if took := time.Since(first.at); took < wait {
			c.fail("next was repeated after %v, although it may wait %v", took, wait)
		}
		c.echo()
	}},
	{"next-error", "another status of next: tried again with growing pauses", func(c *env) {
		c.startWorker()
		begin := time.Time{}
		c.hook(func(r *request) bool {
			if r.op == "next" && begin.IsZero() {
				begin = r.at
			}
			if r.op == "next" && time.Since(begin) < 3*time.Second {
				r.refuse(statusNomem, "no memory")
				return true
			}
			return false
		})
		s := c.session(1)
		c.until(2*time.Second, "next", func() bool { return s.counts["next"] > 0 })
		c.pause(3 * time.Second)
		if n := c.count("next", begin); n > 10 || n < 2 {
			c.fail("%d requests in 3 s, not 2 to 10", n)
		}
		c.echo()
		if len(c.g.sessions) > 1 {
			c.fail("another session was opened")
		}
	}},
	{"next-invalid", "INVALID on next: the worker says so and ends, exit code not 0", func(c *env) {
		c.startWorker()
		c.hook(func(r *request) bool {
			if r.op == "next" {
				r.refuse(statusInvalid, "not welcome here")
			}
			return r.op == "next"
		})
		c.session(1)
		refusedEnd(c)
	}},
	{"duplicate-in-hand", "a claim that is in hand and comes again is ignored", func(c *env) {
		s := c.worker()
		t := c.running("beat", "20")
		again(c, s, t)
		c.outcome(t, 5*time.Second)
		c.pause(700 * time.Millisecond)
		onlyOnce(c, t)
		c.echo()
	}},
	{"duplicate-completed", "a claim that was completed in this session and comes again is ignored", func(c *env) {
		s := c.worker()
		t := c.running("echo", "once")
		c.outcome(t, 5*time.Second)
		c.pause(100 * time.Millisecond)
		again(c, s, t)
		c.pause(500 * time.Millisecond)
		onlyOnce(c, t)
		c.echo()
	}},
}

// again gives a task a second time, and does not count it as in hand anew.
func again(c *env, s *session, t *task) {
	c.until(3*time.Second, "a next", func() bool { return s.parked != nil })
	c.locked(func() {
		r := s.parked
		s.unpark()
		r.answer(tasks{Tasks: []taskWire{t.wire}})
	})
}

func onlyOnce(c *env, t *task) {
	c.locked(func() {
		if n := len(t.outcomes); n != 1 {
			c.fail("%s was completed %d times", t.wire.Claim, n)
		}
	})
}

func expectFailure(c *env, t *task, final bool) {
	got := c.outcome(t, 8*time.Second)
	if got.Failure == nil || got.Failure.Text != "no" || got.Failure.Type != "declined" || got.Failure.Final != final {
		c.fail("the outcome is %s", short(got))
	}
}
