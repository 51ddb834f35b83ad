package main

import (
	"bytes"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// noText finds what no text of a message may have: NULs and halves of surrogate pairs.
var noText = regexp.MustCompile(`\\u(0000|[dD][89a-fA-F][0-9a-fA-F]{2})`)

var outcomeCases = []testCase{
	{"throw-text", "what a handler throws is sent as a text: in UTF-8, without NULs", func(c *env) {
		c.worker()
		c.hook(func(r *request) bool {
			if data := r.msg.Data; r.op == "complete" && (!utf8.Valid(data) || noText.Match(data)) {
				c.fail("a text that is none: %.300q", data)
			}
			return false
		})
		for _, text := range []string{"a\x00b", "\x00", "a\xff\xc3b"} {
			got := c.outcome(c.give("throw", text), 8*time.Second)
			if got.Failure == nil || got.Failure.Text == "" || strings.Contains(got.Failure.Text, "\x00") {
				c.fail("the outcome is %s", short(got))
			}
		}
		c.echo()
	}},
	{"complete-invalid", "INVALID on complete: the task fails with that text, and the worker goes on", func(c *env) { refusedOutcome(c, false) }},
	{"complete-result-invalid", "the same for a result that is INVALID", func(c *env) { refusedOutcome(c, true) }},
	{"complete-invalid-twice", "INVALID also for the failure: the worker says so and ends, exit code not 0", func(c *env) {
		c.worker()
		t := c.task("echo", "1")
		t.refused = true
		c.hook(func(r *request) bool {
			if r.op == "complete" {
				r.refuse(statusInvalid, "an outcome that is not welcome")
			}
			return r.op == "complete"
		})
		c.enqueue(t)
		c.until(5*time.Second, "its outcome", func() bool { return len(t.outcomes) > 0 })
		refusedEnd(c)
		if n := len(t.outcomes); n != 2 || t.outcomes[n-1].Failure == nil {
			c.fail("%d outcomes", n)
		}
	}},
	{"fail-details", "details that no renewal has had are in the outcome of a try that fails", func(c *env) {
		c.locked(func() { c.g.renewMs = 3000 })
		c.worker()
		got := c.outcome(c.give("notify", "at 9\x00\xff"), 8*time.Second)
		if got.Failure == nil || got.Failure.Text != "no" || !got.Heartbeat || string(got.Details) != "at 9\x00\xff" {
			c.fail("the outcome is %s", short(got))
		}
		if got = c.outcome(c.give("fail", ""), 8*time.Second); got.Heartbeat || len(got.Details) > 0 {
			c.fail("the outcome is %s", short(got))
		}
	}},
	{"details-max", "details above details_max are an error of heartbeat", func(c *env) {
		c.locked(func() { c.g.detailsMax = 10 })
		c.worker()
		detailsAtMost(c, 10)
	}},
	{"details-max-unsaid", "without details_max it is 16384", func(c *env) {
		c.worker()
		detailsAtMost(c, 16384)
	}},
	{"hang-up", "the connection is closed for good: the worker ends, exit code not 0", func(c *env) {
		c.worker()
		c.locked(func() { c.g.lossy = true })
		c.give("hangup", "")
		c.ends(14 * time.Second)
		if c.d.code == 0 {
			c.fail("exit code 0")
		}
	}},
}

// refusedOutcome has a gateway that cannot take outputs of one task.
func refusedOutcome(c *env, result bool) {
	c.worker()
	t := c.task("echo", "refuse this")
	t.refused = true
	c.hook(func(r *request) bool {
		if r.op != "complete" || len(r.complete.Outcomes) != 1 || string(r.complete.Outcomes[0].Output) != "refuse this" {
			return false
		}
		if result {
			r.answer(tasksCompleted{Results: []outcomeResult{{Claim: t.wire.Claim, Status: statusInvalid, Text: "no such output, please"}}})
		} else {
			r.refuse(statusInvalid, "no such output, please")
		}
		return true
	})
	c.enqueue(t)
	c.until(8*time.Second, "another outcome", func() bool { return len(t.outcomes) > 1 && !t.answered.IsZero() })
	c.locked(func() {
		if got := t.outcomes[1]; got.Failure == nil || !strings.Contains(got.Failure.Text, "no such output, please") || len(got.Output) > 0 {
			c.fail("the outcome is %s", short(got))
		}
	})
	c.echo()
}

func detailsAtMost(c *env, n int) {
	if got := c.outcome(c.give("notify", string(bytes.Repeat([]byte("x"), n))), 8*time.Second); got.Failure == nil || got.Failure.Text != "no" {
		c.fail("with %d bytes the outcome is %s", n, short(got))
	}
	if got := c.outcome(c.give("notify", string(bytes.Repeat([]byte("x"), n+1))), 8*time.Second); got.Failure == nil || got.Failure.Text == "no" {
		c.fail("with %d bytes the outcome is %s", n+1, short(got))
	}
}
