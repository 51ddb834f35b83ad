package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"syscall"
	"time"
)

const forStart = 20 * time.Second // a driver's runtime takes its time

// env is what a case works with.
type env struct {
	command []string
	log     *traffic
	net     *network
	g       *gateway
	d       *driver
	more    []string // NAME=VALUE of the driver's environment
	reasons []string
	stopped bool // the case has stopped the driver itself
	tasks   int
	results int
}

type failure struct{}

// fail notes a reason; fatal ends the case, too.
func (c *env) fail(format string, args ...any) {
	if len(c.reasons) < 8 {
		c.reasons = append(c.reasons, fmt.Sprintf(format, args...))
	}
}

func (c *env) fatal(format string, args ...any) {
	c.fail(format, args...)
	panic(failure{})
}

func (c *env) setUp() {
	var err error
	if c.net, err = newNetwork(); err != nil {
		c.fatal("%v", err)
	}
	if c.g, err = newGateway(c.net, c.log); err != nil {
		c.fatal("%v", err)
	}
}

func (c *env) startWorker() {
	c.start("worker")
}

func (c *env) start(mode string) {
	d, err := startDriver(c.command, mode, c.net.url(), c.more, c.log)
	if err != nil {
		c.fatal("the driver does not start: %v", err)
	}
	c.d = d
}

// tearDown stops the driver if the case has not: it must close its sessions and end with 0.
func (c *env) tearDown() {
	if c.d != nil && !c.stopped {
		c.stop(6 * time.Second)
	}
}

func (c *env) stop(within time.Duration) {
	c.stopped = true
	if c.d.ended() {
		c.fatal("the driver has ended by itself, exit code %d", c.d.code)
	}
	c.d.signal(syscall.SIGTERM)
	c.ends(within)
	if c.d.code != 0 {
		c.fail("exit code %d after SIGTERM, not 0", c.d.code)
	}
	c.locked(func() {
		if n := len(c.g.sessions); n > 0 && !c.g.sessions[n-1].closed && !c.g.sessions[n-1].dead {
			c.fail("the session was not closed before the end")
		}
	})
}

func (c *env) ends(within time.Duration) {
	c.stopped = true
	select {
	case <-c.d.done:
	case <-time.After(scaled(within)):
		c.fatal("the driver has not ended within %v", within)
	}
}

func (c *env) end() {
	if c.d != nil {
		c.d.kill()
	}
	if c.g != nil {
		c.g.mu.Lock()
		for _, problem := range c.g.problems {
			c.fail("%s", problem)
		}
		c.g.mu.Unlock()
		c.g.nc.Close()
	}
	if c.net != nil {
		c.net.end()
	}
}

func (c *env) locked(do func()) {
	c.g.mu.Lock()
	defer c.g.mu.Unlock()
	do()
}

// hook sets what looks at each request first; it runs with the lock held.
func (c *env) hook(take func(r *request) bool) { c.locked(func() { c.g.hook = take }) }

// hookAlso sets one that looks at what the hook lets pass.
func (c *env) hookAlso(take func(r *request) bool) {
	c.locked(func() {
		first := c.g.hook
		c.g.hook = func(r *request) bool { return first != nil && first(r) || take(r) }
	})
}

// until waits for a condition, which is looked at with the lock held.
func (c *env) until(within time.Duration, what string, is func() bool) {
	deadline := time.Now().Add(scaled(within))
	for {
		ok, ended := false, c.d != nil && c.d.ended()
		c.locked(func() { ok = is() })
		if ok {
			return
		}
		if ended {
			c.fatal("the driver has ended, exit code %d; missing: %s", c.d.code, what)
		}
		if time.Now().After(deadline) {
			c.fatal("not within %v: %s", within, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (c *env) pause(d time.Duration) { time.Sleep(d) }

// session waits for the n-th session, from 1.
func (c *env) session(n int) *session {
	within := 8 * time.Second
	if n == 1 {
		within = forStart
	}
	c.until(within, fmt.Sprintf("session %d is opened", n), func() bool { return len(c.g.sessions) >= n })
	var s *session
	c.locked(func() { s = c.g.sessions[n-1] })
	return s
}

// worker starts the driver and waits for its session and its first next.
func (c *env) worker() *session {
	c.startWorker()
	s := c.session(1)
	c.until(3*time.Second, "a first next", func() bool { return s.counts["next"] > 0 })
	return s
}

// task makes one that no session has yet.
func (c *env) task(activity, input string) *task {
	c.tasks++
	n := c.tasks
	return &task{wire: taskWire{Claim: fmt.Sprintf("claim-%d", n), Activity: activity, Instance: fmt.Sprintf("order-%d", n), Execution: 1,
		ActivityID: uint64(n), TryNumber: 1, Attempt: 1, Input: []byte(input), Key: fmt.Sprintf("key-%d", n), Orchestration: "checkout", Version: 1,
		Queue: "conf", Token: fmt.Sprintf("token-%d", n)}}
}

// give queues a task for whichever session asks.
func (c *env) give(activity, input string) *task {
	t := c.task(activity, input)
	c.enqueue(t)
	return t
}

func (c *env) enqueue(list ...*task) {
	c.locked(func() {
		for _, t := range list {
			c.g.queue = append(c.g.queue, t)
			c.g.all = append(c.g.all, t)
		}
		c.g.dispatch()
	})
}

func (c *env) running(activity, input string) *task {
	t := c.give(activity, input)
	c.until(8*time.Second, activity+" is handed out", func() bool { return !t.given.IsZero() })
	c.pause(150 * time.Millisecond)
	return t
}

// outcome waits for a task's.
func (c *env) outcome(t *task, within time.Duration) outcome {
	var got outcome
	c.until(within, "complete of "+t.wire.Claim+" ("+t.wire.Activity+")", func() bool {
		if len(t.outcomes) > 0 {
			got = t.outcomes[0]
		}
		return len(t.outcomes) > 0
	})
	return got
}

func (c *env) expectOutput(t *task, want []byte) {
	got := c.outcome(t, 8*time.Second)
	if got.Failure != nil || got.Cancelled || !bytes.Equal(got.Output, want) {
		c.fail("%s: outcome %s, not %d bytes %.60q", t.wire.Activity, short(got), len(want), want)
	}
}

func (c *env) expectCancelled(t *task, within time.Duration) {
	got := c.outcome(t, within)
	if !got.Cancelled || got.Failure != nil || len(got.Output) > 0 {
		c.fail("%s was cancelled, and its outcome is %s", t.wire.Activity, short(got))
	}
}

func short(o outcome) string {
	text := o.flat()
	if len(text) > 200 {
		text = text[:200] + "…"
	}
	return text
}

// echo shows that the worker is alive.
func (c *env) echo() {
	t := c.give("echo", "alive")
	c.expectOutput(t, []byte("alive"))
}

// cancel tells of a cancellation: by the inbox, by renewals, or both.
func (c *env) cancel(t *task, kind, reason string, graceMs uint32, inbox, renewals bool) {
	c.locked(func() {
		n := notice{Claim: t.wire.Claim, Kind: kind, Reason: reason, GraceMs: graceMs}
		if renewals {
			t.notice = &n
		}
		if inbox {
			c.g.publish(t.sess, n)
		}
	})
}

// told waits for the driver's event of a cancelled task.
func (c *env) told(t *task, within time.Duration) event {
	var e *event
	c.until(within, "the driver's event of "+t.wire.Instance, func() bool {
		e = c.d.seen(func(e event) bool { return e.Event == "cancelled" && e.Instance == t.wire.Instance })
		return e != nil
	})
	return *e
}

// nothingSent checks that no outcome of the task has come.
func (c *env) nothingSent(t *task) {
	c.locked(func() {
		if len(t.outcomes) > 0 {
			c.fail("%s is lost, and %s was sent", t.wire.Claim, short(t.outcomes[0]))
		}
	})
}

// count counts requests of an operation since a time, in all sessions.
func (c *env) count(op string, since time.Time) int {
	n := 0
	c.locked(func() {
		for _, r := range c.g.requests {
			if r.op == op && !r.at.Before(since) {
				n++
			}
		}
	})
	return n
}

// ---- client mode ----

type fields map[string]any

func b64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// send gives the driver a command and returns its number.
func (c *env) send(op string, more fields) int {
	if c.d == nil {
		c.start("client")
	}
	c.results++
	command := fields{"id": c.results, "op": op, "timeout_ms": 8000}
	for key, value := range more {
		command[key] = value
	}
	text, _ := json.Marshal(command)
	c.log.add("-- stdin: " + string(text))
	c.d.stdin.Write(append(text, '\n'))
	return c.results
}

func (c *env) result(id int, within time.Duration) event {
	var e *event
	c.until(within, fmt.Sprintf("result %d of the client", id), func() bool {
		e = c.d.seen(func(e event) bool { return e.ID == id })
		return e != nil || c.d.ended()
	})
	if e == nil {
		c.fatal("the client ended without result %d", id)
	}
	return *e
}

func (c *env) do(op string, more fields) event { return c.result(c.send(op, more), forStart) }

// finish closes the driver's input: it ends with 0.
func (c *env) finish() {
	c.d.stdin.Close()
	c.ends(5 * time.Second)
	if c.d.code != 0 {
		c.fail("exit code %d at the end of input, not 0", c.d.code)
	}
}
