package main

import (
	"fmt"
	"strconv"
	"time"
)

var renewCases = []testCase{
	{"renew-idle", "renewals come every renew_ms, also without tasks, and not much more often", func(c *env) {
		c.worker()
		begin := time.Now()
		c.pause(3 * time.Second)
		if n := c.count("renew", begin); n < 7 || n > 15 {
			c.fail("%d renewals in 3 s with renew_ms 300", n)
		}
	}},
	{"renew-busy", "renewals go on while handlers block, and list them", func(c *env) {
		s := c.worker()
		for i := 0; i < 4; i++ {
			c.give("stubborn", "2500")
		}
		c.until(3*time.Second, "all are handed out", func() bool { return len(s.tasks) == 4 })
		begin := time.Now()
		c.pause(2 * time.Second)
		if n := c.count("renew", begin); n < 5 {
			c.fail("%d renewals in 2 s with renew_ms 300", n)
		}
		c.until(3*time.Second, "all are completed", func() bool {
			for _, t := range s.tasks {
				if !t.finished {
					return false
				}
			}
			return true
		})
	}},
	{"renew-uncompleted", "a claim is renewed while its complete is not answered, and not after it", func(c *env) {
		s := c.worker()
		var held *request
		c.hook(func(r *request) bool {
			if r.op == "complete" && held == nil {
				held = r
				return true
			}
			return false
		})
		t := c.running("echo", "x")
		c.until(3*time.Second, "complete", func() bool { return held != nil })
		c.pause(2 * time.Second) // the gateway's check sees a renewal that leaves it out
		c.locked(func() {
			last := lastRenew(c)
			if last == nil || len(last.renew.Running) != 1 || last.renew.Running[0].Claim != t.wire.Claim {
				c.fail("the last renewal does not list %s", t.wire.Claim)
			}
			held.handle()
		})
		c.pause(1200 * time.Millisecond)
		c.locked(func() {
			if last := lastRenew(c); len(last.renew.Running) != 0 {
				c.fail("the last renewal lists something")
			}
		})
		_ = s
	}},
	{"renew-unanswered-once", "one renewal without an answer: repeated in time, in this session or in one that resumes it, and nothing is lost", func(c *env) {
		c.worker()
		t := c.running("sleep", "6500")
		dropped := time.Time{}
		c.hook(func(r *request) bool {
			if r.op == "renew" && dropped.IsZero() {
				dropped = r.at
				return true
			}
			return false
		})
		c.until(3*time.Second, "a renewal", func() bool { return !dropped.IsZero() })
		c.pause(4500 * time.Millisecond)
		if n := c.count("renew", dropped); n < 2 {
			c.fail("no other renewal within 4.5 s, three quarters of the lease")
		}
		if got := c.outcome(t, 6*time.Second); string(got.Output) != "6500" {
			c.fail("the outcome is %s", short(got))
		}
	}},
	{"renew-error", "another status of renew: tried again within the lease, nothing is lost", func(c *env) {
		c.worker()
		t := c.running("sleep", "3000")
		refused := 0
		c.hook(func(r *request) bool {
			if r.op == "renew" && refused < 3 {
				refused++
				r.refuse(statusUnavailable, "database away")
				return true
			}
			return false
		})
		c.until(5*time.Second, "three refused renewals", func() bool { return refused == 3 })
		if got := c.outcome(t, 6*time.Second); string(got.Output) != "3000" {
			c.fail("the outcome is %s", short(got))
		}
		if len(c.g.sessions) != 1 {
			c.fail("another session was opened")
		}
	}},
	{"heartbeat-newest", "heartbeats ride along, the newest only, each once", func(c *env) {
		c.worker()
		t := c.running("beat", "40")
		c.outcome(t, 6*time.Second)
		c.locked(func() {
			last := 0
			for _, details := range t.beats {
				n, err := strconv.Atoi(details)
				if err != nil || n <= last {
					c.fail("the heartbeats are %v", t.beats)
					break
				}
				last = n
			}
			if len(t.beats) < 3 || last < 30 {
				c.fail("only %d heartbeats in 2 s with renew_ms 300, the last %d of 40: %v", len(t.beats), last, t.beats)
			}
			if string(t.outcomes[0].Output) != "40" {
				c.fail("the outcome is %s", short(t.outcomes[0]))
			}
		})
	}},
	{"heartbeat-once", "a heartbeat that was answered does not come again, while the claim is in hand", func(c *env) {
		c.worker()
		var held *request
		c.hook(func(r *request) bool {
			if r.op == "complete" && held == nil {
				held = r
				return true
			}
			return false
		})
		t := c.give("beat", "3")
		c.until(3*time.Second, "complete", func() bool { return held != nil })
		c.pause(1500 * time.Millisecond)
		c.locked(func() {
			seen := map[string]bool{}
			for _, details := range t.beats {
				if seen[details] {
					c.fail("the heartbeats are %v", t.beats)
				}
				seen[details] = true
			}
			held.handle()
		})
	}},
	{"heartbeat-quiet", "a handler that does not heartbeat anew has no heartbeat in a renewal", func(c *env) {
		c.worker()
		t := c.running("sleep", "1500")
		c.outcome(t, 4*time.Second)
		c.locked(func() {
			if len(t.beats) > 0 {
				c.fail("heartbeats %v of an activity that has none", t.beats)
			}
		})
	}},
	{"heartbeat-repeated", "heartbeats of a renewal that was not answered come again, or newer ones", func(c *env) {
		c.locked(func() { c.g.renewMs = 1000 })
		c.worker()
		t := c.give("beat", "16") // ends after 0.8 s
		var lost []string
		c.hook(func(r *request) bool {
			if r.op == "complete" {
				return true // so that it stays in hand
			}
			if r.op == "renew" && last(t.beats) == "16" && len(lost) == 0 {
				lost = append([]string(nil), t.beats...)
				return true
			}
			return false
		})
		c.until(4*time.Second, "a heartbeat", func() bool { return len(lost) > 0 })
		c.until(6*time.Second, "the heartbeat again", func() bool { return len(t.beats) > len(lost) })
		c.locked(func() {
			a, _ := strconv.Atoi(last(lost))
			b, _ := strconv.Atoi(t.beats[len(lost)])
			if b < a {
				c.fail("heartbeat %d after %d", b, a)
			}
		})
		c.hook(nil)
		c.until(14*time.Second, "complete again", func() bool { return !t.answered.IsZero() })
	}},
}

func lastRenew(c *env) *request {
	for i := len(c.g.requests) - 1; i >= 0; i-- {
		if c.g.requests[i].op == "renew" {
			return c.g.requests[i]
		}
	}
	return nil
}

var cancelCases = []testCase{
	{"notice-inbox", "a notice to the inbox ends the handler in less than 50 ms (best of 8)", func(c *env) {
		c.worker()
		best := time.Hour
		for i := 0; i < 8 && best >= scaled(50*time.Millisecond); i++ {
			t := c.running("sleep", "20000")
			begin := time.Now()
			c.cancel(t, "requested", "bored", 1500, true, false)
			c.expectCancelled(t, 3*time.Second)
			c.locked(func() { best = min(best, t.times[0].Sub(begin)) })
		}
		if best >= scaled(50*time.Millisecond) {
			c.fail("the fastest took %v", best)
		}
	}},
	{"notice-renew", "a notice that comes only in the answer to renew ends the handler", func(c *env) {
		c.worker()
		t := c.running("sleep", "20000")
		c.cancel(t, "select_loser", "", 1500, false, true)
		c.expectCancelled(t, 3*time.Second)
		if e := c.told(t, time.Second); e.Kind != "select_loser" {
			c.fail("kind %q, not select_loser", e.Kind)
		}
	}},
	{"notice-fields", "kind, reason and grace_ms reach the handler", func(c *env) {
		c.worker()
		for i, kind := range []string{"requested", "select_loser", "explicit", "ended", "timeout", "terminated", "cancelled", "lease_lost", "shutdown"} {
			t := c.running("sleep", "20000")
			reason := fmt.Sprintf("reason %d", i)
			c.cancel(t, kind, reason, uint32(1000+i), true, false)
			e := c.told(t, 3*time.Second)
			if e.Kind != kind || e.Reason != reason || e.GraceMs > int64(1000+i) || e.GraceMs < 800 {
				c.fail("notice %s %q %d came as %s %q %d", kind, reason, 1000+i, e.Kind, e.Reason, e.GraceMs)
			}
			c.expectCancelled(t, 3*time.Second)
		}
	}},
	{"notice-kind-unknown", "a kind that the client does not know ends the handler, too", func(c *env) {
		c.worker()
		t := c.running("sleep", "20000")
		c.cancel(t, "of_the_future", "x", 1000, true, true)
		c.expectCancelled(t, 3*time.Second)
	}},
	{"notice-twice", "a notice that comes often fires once, and its task is completed once", func(c *env) {
		c.worker()
		t := c.running("stubborn", "1500")
		u := c.running("sleep", "20000")
		c.cancel(u, "requested", "first", 1000, true, true)
		c.told(u, time.Second)
		for i := 0; i < 5; i++ {
			c.cancel(t, "requested", "first", 1000, true, true)
			c.cancel(u, "timeout", "second", 1000, true, true)
			c.pause(100 * time.Millisecond)
		}
		c.outcome(t, 4*time.Second)
		c.expectCancelled(u, 2*time.Second)
		if e := c.told(u, time.Second); e.Kind != "requested" || e.Reason != "first" {
			c.fail("%s %q counted, not the first notice", e.Kind, e.Reason)
		}
		c.cancel(t, "requested", "late", 1000, true, false)
		c.pause(400 * time.Millisecond)
		onlyOnce(c, t)
		onlyOnce(c, u)
		n := 0
		c.d.mu.Lock()
		for _, e := range c.d.events {
			if e.Instance == u.wire.Instance {
				n++
			}
		}
		c.d.mu.Unlock()
		if n != 1 {
			c.fail("the handler was told %d times", n)
		}
		c.echo()
	}},
	{"notice-first", "of two notices that come together the first counts", func(c *env) {
		c.worker()
		t := c.running("sleep", "20000")
		c.locked(func() {
			c.g.publish(t.sess, notice{Claim: t.wire.Claim, Kind: "requested", Reason: "first", GraceMs: 1000})
			c.g.publish(t.sess, notice{Claim: t.wire.Claim, Kind: "timeout", Reason: "second", GraceMs: 1000})
		})
		c.expectCancelled(t, 2*time.Second)
		if e := c.told(t, time.Second); e.Kind != "requested" || e.Reason != "first" {
			c.fail("%s %q counted, not the first notice", e.Kind, e.Reason)
		}
	}},
	{"notice-strange", "notices of unknown claims and broken ones are ignored", func(c *env) {
		s := c.worker()
		t := c.running("sleep", "1200")
		c.locked(func() {
			c.g.publish(s, notice{Claim: "no such claim", Kind: "requested"})
			for _, data := range []string{"", "{", "null", "[]", "7", "\xff\xfe", `{"claim":7}`, `{"claim":null}`, `{"claim":"` + t.wire.Claim} {
				c.g.publishRaw(s, []byte(data))
			}
		})
		if got := c.outcome(t, 4*time.Second); string(got.Output) != "1200" {
			c.fail("the outcome is %s", short(got))
		}
		c.echo()
	}},
	{"notice-one-of-four", "only the handler that is meant ends", func(c *env) {
		c.worker()
		a, b, d := c.running("sleep", "1500"), c.running("sleep", "20000"), c.running("sleep", "1500")
		c.cancel(b, "explicit", "", 1000, true, true)
		c.expectCancelled(b, time.Second)
		c.expectOutput(a, []byte("1500"))
		c.expectOutput(d, []byte("1500"))
	}},
	{"notice-stubborn", "a handler that ignores the notice is completed once, as it ends", func(c *env) {
		c.worker()
		t := c.running("stubborn", "1000")
		c.cancel(t, "requested", "", 300, true, true)
		if got := c.outcome(t, 4*time.Second); got.Failure != nil || !got.Cancelled && string(got.Output) != "done" {
			c.fail("the outcome is %s", short(got))
		}
		c.pause(400 * time.Millisecond)
		onlyOnce(c, t)
	}},
	{"gone", "a claim that is gone ends its handler, and nothing is sent for it", func(c *env) {
		c.worker()
		t := c.running("sleep", "20000")
		u := c.running("stubborn", "1000")
		c.locked(func() { t.gone, u.gone = true, true })
		e := c.told(t, 3*time.Second)
		if e.Kind != "lease_lost" {
			c.fail("kind %q, not lease_lost", e.Kind)
		}
		c.pause(1500 * time.Millisecond)
		c.nothingSent(t)
		c.nothingSent(u)
		c.echo()
	}},
	{"gone-slot", "a handler that runs on for a claim that is gone takes its slot until it ends", func(c *env) {
		s := c.worker()
		list := []*task{c.running("stubborn", "2500"), c.running("stubborn", "2500"), c.running("stubborn", "2500"), c.running("stubborn", "2500")}
		c.locked(func() {
			for _, t := range list {
				t.gone = true
			}
		})
		c.until(2*time.Second, "all are told to be gone", func() bool {
			for _, t := range list {
				if !t.lost {
					return false
				}
			}
			return true
		})
		c.pause(300 * time.Millisecond)
		c.locked(func() {
			if s.parked != nil {
				c.fail("next with max %d while four handlers still run", s.parked.next.Max)
			}
		})
		c.pause(2 * time.Second)
		c.echo()
	}},
	{"gone-completing", "a claim that is gone while its complete is not answered is dropped", func(c *env) {
		c.worker()
		t := c.give("echo", "x")
		c.hook(func(r *request) bool { return r.op == "complete" })
		c.outcome(t, 3*time.Second)
		c.locked(func() { t.gone = true })
		c.until(3*time.Second, "it is told to be gone", func() bool { return t.lost })
		c.pause(time.Second)
		c.hook(nil)
		c.echo()
		c.pause(10 * time.Second)
		onlyOnce(c, t)
	}},
}
