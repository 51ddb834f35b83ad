package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// asked reads a client's request strictly.
func asked[T any](c *env, r *request) T {
	var message T
	if err := decode(r.msg.Data, &message); err != nil {
		c.g.problem("%s cannot be read: %v", r.topic, err)
	}
	return message
}

func (c *env) clients(answer func(r *request) any) { c.locked(func() { c.g.clients = answer }) }

// same compares what came, as JSON.
func (c *env) same(what string, got, want any) {
	a, _ := json.Marshal(got)
	b, _ := json.Marshal(want)
	if !bytes.Equal(a, b) {
		c.fail("%s: %.300s, not %.300s", what, a, b)
	}
}

func (c *env) status(e event, status int, text string) {
	if e.Status != status || text != "" && !contains(e.Text, text) {
		c.fail("result %d: status %d, text %q, not %d, %q", e.ID, e.Status, e.Text, status, text)
	}
}

var clientCases = []testCase{
	{"client-start", "start: subject, fields, and the id of the answer", func(c *env) {
		var got startInstance
		c.clients(func(r *request) any {
			got = asked[startInstance](c, r)
			c.same("subject", r.topic, "start.checkout")
			if got.Instance == "" {
				return instanceStarted{Instance: "random-1"}
			}
			return instanceStarted{Instance: got.Instance}
		})
		e := c.do("start", fields{"orchestration": "checkout", "instance": "order-1", "input": b64("in\x00\xff"), "version": 3})
		c.status(e, 0, "")
		c.same("instance", e.Instance, "order-1")
		if got.RequestID == "" {
			c.fail("no request id")
		}
		first := got.RequestID
		got.RequestID = ""
		c.same("request", got, startInstance{Instance: "order-1", Input: []byte("in\x00\xff"), Version: 3})
		e = c.do("start", fields{"orchestration": "checkout"})
		c.same("instance", e.Instance, "random-1")
		if got.RequestID == first {
			c.fail("two starts have the same request id")
		}
		c.finish()
	}},
	{"client-start-conflict", "start: CONFLICT is a result, and is not tried again", func(c *env) {
		c.clients(func(r *request) any { return plain{statusConflict, "order-1 is in use"} })
		c.status(c.do("start", fields{"orchestration": "checkout", "instance": "order-1"}), statusConflict, "in use")
		c.once()
		c.finish()
	}},
	{"client-denied", "DENIED and INVALID are results, and are not tried again", func(c *env) {
		status := uint32(statusDenied)
		c.clients(func(r *request) any { return plain{status, "no"} })
		c.status(c.do("start", fields{"orchestration": "checkout", "instance": "order-1"}), statusDenied, "no")
		c.once()
		c.locked(func() { status, c.g.requests = statusInvalid, nil })
		c.status(c.do("signal", fields{"event": "e", "instance": "order-1"}), statusInvalid, "no")
		c.once()
		c.finish()
	}},
	{"client-start-repeated", "start: no answer, UNAVAILABLE, a broken answer: repeated with the same request id", func(c *env) {
		ids := map[string]int{}
		c.clients(func(r *request) any {
			got := asked[startInstance](c, r)
			ids[got.RequestID]++
			switch r.n {
			case 1:
				return nil
			case 2:
				return plain{statusUnavailable, "not now"}
			case 3:
				r.answerRaw([]byte(`{"instan`), 0, "")
				return nil
			}
			return instanceStarted{Instance: "order-1"}
		})
		c.status(c.do("start", fields{"orchestration": "checkout", "instance": "order-1", "timeout_ms": 40000}), 0, "")
		if len(ids) != 1 {
			c.fail("request ids %v", ids)
		}
		c.finish()
	}},
	{"client-signal-repeated", "signal: no answer: repeated with the same request id; two signals have different ones", func(c *env) {
		ids := map[string]int{}
		c.clients(func(r *request) any {
			got := asked[signalInstance](c, r)
			ids[got.RequestID]++
			if r.n == 1 {
				return nil
			}
			return plain{}
		})
		c.status(c.do("signal", fields{"event": "paid", "instance": "order-1", "timeout_ms": 30000}), 0, "")
		if len(ids) != 1 {
			c.fail("request ids %v", ids)
		}
		c.status(c.do("signal", fields{"event": "paid", "instance": "order-1"}), 0, "")
		if len(ids) != 2 || ids[""] > 0 {
			c.fail("request ids %v", ids)
		}
		c.finish()
	}},
	{"client-signal", "signal: subject, fields; CONFLICT when it has ended", func(c *env) {
		c.clients(func(r *request) any {
			got := asked[signalInstance](c, r)
			got.RequestID = ""
			c.same("subject", r.topic, "signal.paid")
			if got.Instance == "ended" {
				return plain{statusConflict, "it has ended"}
			}
			c.same("request", got, signalInstance{Instance: "bestellung ü/漢", Data: []byte("\x00\xff")})
			return plain{}
		})
		c.status(c.do("signal", fields{"event": "paid", "instance": "bestellung ü/漢", "input": b64("\x00\xff")}), 0, "")
		c.status(c.do("signal", fields{"event": "paid", "instance": "ended"}), statusConflict, "ended")
		c.finish()
	}},
	{"client-note", "signal and cancel: the note of the answer reaches the caller", func(c *env) {
		c.clients(func(r *request) any { return accepted{Note: "it is kept ü: " + r.topic} })
		signal := c.do("signal", fields{"event": "paid", "instance": "order-1"})
		c.status(signal, 0, "")
		c.same("note of signal", signal.Note, "it is kept ü: signal.paid")
		cancel := c.do("cancel", fields{"instance": "order-1"})
		c.status(cancel, 0, "")
		c.same("note of cancel", cancel.Note, "it is kept ü: cancel")
		c.clients(func(r *request) any { return accepted{} })
		c.same("no note", c.do("cancel", fields{"instance": "order-1"}).Note, "")
		c.finish()
	}},
	{"client-cancel", "cancel and terminate: subject, fields, CONFLICT and NOT_FOUND", func(c *env) {
		var topics []string
		c.clients(func(r *request) any {
			got := asked[endInstance](c, r)
			topics = append(topics, r.topic)
			switch got.Instance {
			case "ended":
				return plain{statusConflict, "it has ended"}
			case "none":
				return plain{statusNotFound, "there is none"}
			}
			got.RequestID = ""
			c.same("request", got, endInstance{"order-1", "weil ü", ""})
			return plain{}
		})
		for _, op := range []string{"cancel", "terminate"} {
			c.status(c.do(op, fields{"instance": "order-1", "reason": "weil ü"}), 0, "")
			c.status(c.do(op, fields{"instance": "ended"}), statusConflict, "ended")
			c.status(c.do(op, fields{"instance": "none"}), statusNotFound, "none")
		}
		c.same("subjects", topics, []string{"cancel", "cancel", "cancel", "terminate", "terminate", "terminate"})
		c.finish()
	}},
	{"client-cancel-repeated", "cancel and terminate: no answer: repeated with the same request id; two have different ones", func(c *env) {
		ids := map[string]int{}
		c.clients(func(r *request) any {
			got := asked[endInstance](c, r)
			ids[got.RequestID]++
			if r.n == 1 {
				return nil
			}
			return plain{}
		})
		c.status(c.do("cancel", fields{"instance": "order-1", "timeout_ms": 30000}), 0, "")
		if len(ids) != 1 {
			c.fail("request ids %v", ids)
		}
		c.status(c.do("terminate", fields{"instance": "order-1"}), 0, "")
		if len(ids) != 2 || ids[""] > 0 {
			c.fail("request ids %v", ids)
		}
		c.finish()
	}},
	{"client-query", "query: subject, fields, output; errors are results", func(c *env) {
		c.clients(func(r *request) any {
			got := asked[queryInstance](c, r)
			c.same("subject", r.topic, "query.state")
			switch got.Instance {
			case "none":
				return queryResult{Status: statusNotFound, Text: "there is none"}
			case "fails":
				return queryResult{Status: statusApp, Text: "the query failed"}
			}
			c.same("request", got, queryInstance{"order-1", []byte("\xff")})
			return queryResult{Output: []byte("out\x00\xfe")}
		})
		e := c.do("query", fields{"query": "state", "instance": "order-1", "input": b64("\xff")})
		c.status(e, 0, "")
		c.same("output", e.Output, []byte("out\x00\xfe"))
		c.status(c.do("query", fields{"query": "state", "instance": "none"}), statusNotFound, "none")
		c.status(c.do("query", fields{"query": "state", "instance": "fails"}), statusApp, "the query failed")
		c.finish()
	}},
	{"client-wait", "wait: the outcome by its state", func(c *env) {
		c.clients(func(r *request) any {
			got := asked[waitInstance](c, r)
			c.same("subject", r.topic, "wait")
			if got.WaitMs == 0 || got.WaitMs > 60000 {
				c.g.problem("wait_ms %d", got.WaitMs)
			}
			switch got.Instance {
			case "failed":
				return instanceOutcome{Status: statusApp, Text: "card ü", State: "failed", ErrorType: "declined"}
			case "cancelled":
				return instanceOutcome{Status: statusCancelled, Text: "bored", State: "cancelled"}
			case "terminated":
				return instanceOutcome{Status: statusCancelled, Text: "at once", State: "terminated"}
			case "none":
				return instanceOutcome{Status: statusNotFound, Text: "there is none"}
			}
			return instanceOutcome{State: "completed", Output: []byte("out\x00\xfe")}
		})
		e := c.do("wait", fields{"instance": "order-1"})
		c.status(e, 0, "")
		c.same("output", e.Output, []byte("out\x00\xfe"))
		c.same("state", e.State, "completed")
		e = c.do("wait", fields{"instance": "failed"})
		c.status(e, statusApp, "card ü")
		c.same("error type", e.ErrorType, "declined")
		c.same("state", e.State, "failed")
		for _, state := range []string{"cancelled", "terminated"} {
			e = c.do("wait", fields{"instance": state})
			c.status(e, statusCancelled, "")
			c.same("state", e.State, state)
		}
		c.status(c.do("wait", fields{"instance": "none"}), statusNotFound, "none")
		c.finish()
	}},
	{"client-too-large", "a request that no message takes is refused at once, and not repeated", func(c *env) {
		c.clients(func(r *request) any { return instanceStarted{Instance: "order-1"} })
		begin := time.Now()
		e := c.do("start", fields{"orchestration": "checkout", "input": make([]byte, 2<<20), "timeout_ms": 20000})
		if e.Status != statusInvalid && e.Status != statusLimit {
			c.fail("status %d: %.200q", e.Status, e.Text)
		}
		if took := time.Since(begin); took > scaled(5*time.Second) {
			c.fail("it took %v", took)
		}
		c.finish()
	}},
	{"client-wait-again", "wait is asked again after TIMEOUT, until there is an outcome", func(c *env) {
		c.clients(func(r *request) any {
			asked[waitInstance](c, r)
			if r.n < 5 {
				time.AfterFunc(300*time.Millisecond, func() {
					c.locked(func() { r.answer(instanceOutcome{Status: statusTimeout, Text: "it runs", State: "running"}) })
				})
				return nil
			}
			return instanceOutcome{State: "completed", Output: []byte("x")}
		})
		e := c.do("wait", fields{"instance": "order-1", "timeout_ms": 20000})
		c.status(e, 0, "")
		c.same("output", e.Output, []byte("x"))
		c.locked(func() { c.same("requests", c.g.counts["client"], 5) })
		c.finish()
	}},
	{"client-wait-timeout", "wait gives up after its time with TIMEOUT; wait_ms is no longer than what is left", func(c *env) {
		c.clients(func(r *request) any {
			got := asked[waitInstance](c, r)
			if got.WaitMs > 2100 {
				c.g.problem("wait_ms %d with 2000 ms left", got.WaitMs)
			}
			time.AfterFunc(time.Duration(got.WaitMs)*time.Millisecond, func() {
				c.locked(func() { r.answer(instanceOutcome{Status: statusTimeout, Text: "it runs", State: "running"}) })
			})
			return nil
		})
		c.send("wait", fields{"instance": "warm-up", "timeout_ms": 100})
		c.result(c.results, forStart)
		begin := time.Now()
		c.status(c.do("wait", fields{"instance": "order-1", "timeout_ms": 2000}), statusTimeout, "")
		if took := time.Since(begin); took < 1500*time.Millisecond || took > scaled(3500*time.Millisecond) {
			c.fail("it took %v, not 2 s", took)
		}
		c.finish()
	}},
	{"client-no-gateway", "no responders: tried again, not in a busy loop, then UNAVAILABLE in time", func(c *env) {
		c.g.nc.Close()
		c.send("start", fields{"orchestration": "checkout", "instance": "a", "timeout_ms": 100})
		c.result(c.results, forStart)
		before, _ := c.net.nats.Varz(nil)
		begin := time.Now()
		c.status(c.do("start", fields{"orchestration": "checkout", "instance": "b", "timeout_ms": 2000}), statusUnavailable, "")
		took := time.Since(begin)
		after, _ := c.net.nats.Varz(nil)
		if took < 1200*time.Millisecond || took > scaled(4*time.Second) {
			c.fail("it took %v, not 2 s", took)
		}
		if n := after.InMsgs - before.InMsgs; n > 12 || n < 2 {
			c.fail("%d requests in 2 s", n)
		}
		c.finish()
	}},
	{"client-gateway-comes", "no responders: tried again until a gateway runs", func(c *env) {
		c.g.nc.Close()
		id := c.send("start", fields{"orchestration": "checkout", "instance": "order-1", "timeout_ms": 30000})
		c.until(forStart, "the driver connects", func() bool { return c.net.nats.NumClients() > 0 })
		c.pause(time.Second)
		g, err := newGateway(c.net, c.log)
		if err != nil {
			c.fatal("%v", err)
		}
		g.mu.Lock()
		g.clients = func(r *request) any { return instanceStarted{Instance: "order-1"} }
		g.mu.Unlock()
		c.g = g
		c.status(c.result(id, 12*time.Second), 0, "")
		c.finish()
	}},
	{"client-restart", "the NATS server restarts while the client waits", func(c *env) {
		c.clients(func(r *request) any {
			if asked[waitInstance](c, r); r.n == 1 {
				return nil
			}
			return instanceOutcome{State: "completed", Output: []byte("x")}
		})
		id := c.send("wait", fields{"instance": "order-1", "timeout_ms": 90000})
		c.until(forStart, "wait", func() bool { return c.g.counts["client"] > 0 })
		restart(c, 500*time.Millisecond)
		c.status(c.result(id, 80*time.Second), 0, "")
		c.finish()
	}},
	{"client-future-fields", "answers have fields that nobody knows, and come twice", func(c *env) {
		c.locked(func() { c.g.decorate, c.g.twice = true, true })
		c.clients(func(r *request) any {
			if r.topic == "wait" {
				return instanceOutcome{State: "completed", Output: []byte("x")}
			}
			return instanceStarted{Instance: "order-1"}
		})
		for i := 0; i < 3; i++ {
			c.status(c.do("start", fields{"orchestration": "checkout", "instance": fmt.Sprint("order-", i)}), 0, "")
			c.same("output", c.do("wait", fields{"instance": "order-1"}).Output, []byte("x"))
		}
		c.finish()
	}},
	{"client-names", "names of orchestrations, events and queries that are none do not get into a subject: INVALID", func(c *env) {
		c.clients(func(r *request) any { return plain{} })
		for _, name := range []string{"", "a b", "a.b", ">", "*", "ü", strings.Repeat("x", 65), "a\r\nPUB x 0"} {
			c.status(c.do("start", fields{"orchestration": name, "instance": "order-1"}), statusInvalid, "")
			c.status(c.do("signal", fields{"event": name, "instance": "order-1"}), statusInvalid, "")
			c.status(c.do("query", fields{"query": name, "instance": "order-1"}), statusInvalid, "")
		}
		c.locked(func() { c.same("requests", c.g.counts["client"], 0) })
		c.finish()
	}},
	{"client-big", "big inputs and outputs", func(c *env) {
		big := bytes.Repeat([]byte("0123456789abcdef"), 16384)
		c.clients(func(r *request) any {
			got := asked[queryInstance](c, r)
			c.same("length", len(got.Input), len(big))
			return queryResult{Output: got.Input}
		})
		e := c.do("query", fields{"query": "state", "instance": "order-1", "input": b64(string(big))})
		if !bytes.Equal(e.Output, big) {
			c.fail("%d bytes came back", len(e.Output))
		}
		c.finish()
	}},
}

const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

// senders does each operation that changes something, and gives their headers by subject.
func (c *env) senders(more fields) map[string][]string {
	seen := map[string][]string{}
	c.clients(func(r *request) any {
		h := r.msg.Header
		seen[r.topic] = []string{h.Get("Thole-Actor"), h.Get("Thole-Client"), h.Get("traceparent"), h.Get("tracestate")}
		if r.n%2 == 1 {
			return plain{statusUnavailable, "not now"} // a repetition says the same
		}
		return instanceStarted{Instance: "order-1"}
	})
	for op, fields := range map[string]fields{"start": {"orchestration": "checkout"}, "signal": {"event": "paid"}, "cancel": {}, "terminate": {}} {
		fields["instance"] = "order-1"
		for key, value := range more {
			fields[key] = value
		}
		c.status(c.do(op, fields), 0, "")
	}
	return seen
}

// said compares them; "" is any.
func (c *env) said(seen map[string][]string, want ...string) {
	for _, topic := range []string{"start.checkout", "signal.paid", "cancel", "terminate"} {
		if got := seen[topic]; len(got) == len(want) && want[1] == "" {
			got[1] = ""
		}
		c.same(topic, seen[topic], want)
	}
}

var senderCases = []testCase{
	{"client-actor", "who asks is in the header Thole-Actor, and the program in Thole-Client", func(c *env) {
		c.more = []string{"CONF_ACTOR=anna (desk 7) <a@example.com>", "CONF_CLIENT=shop 2.1"}
		c.said(c.senders(nil), "anna (desk 7) <a@example.com>", "shop 2.1", "", "")
		c.finish()
	}},
	{"client-actor-default", "without a name who asks is $THOLE_ACTOR, and there is no trace", func(c *env) {
		c.more = []string{"THOLE_ACTOR=batch-7"}
		c.said(c.senders(nil), "batch-7", "", "", "")
		c.finish()
	}},
	{"client-actor-refused", "a name that no header can have, or that is too long: INVALID, nothing is sent", func(c *env) {
		for _, more := range []string{"CONF_ACTOR=a\r\nThole-Client: b", "CONF_ACTOR=" + strings.Repeat("x", 201), "CONF_ACTOR=\t", "CONF_ACTOR=ü",
			"CONF_CLIENT=a\nb", "CONF_CLIENT=" + strings.Repeat("x", 65)} {
			c.more, c.d = []string{more}, nil
			c.status(c.do("cancel", fields{"instance": "order-1"}), statusInvalid, "")
			c.finish()
		}
		c.locked(func() { c.same("requests", c.g.counts["client"], 0) })
	}},
	{"client-vouched", "a name that NATS vouches for is behind the subject, encoded as an id is", func(c *env) {
		for name, token := range map[string]string{"alice": "alice", "a.b@example.com": "a%2Eb%40example%2Ecom", "ü -_~!*'()+%": "%C3%BC%20-_~%21%2A%27%28%29%2B%25",
			strings.Repeat("ü", 100): strings.Repeat("%C3%BC", 100)} {
			c.more, c.d = []string{"CONF_VOUCHED=" + name}, nil
			seen := c.senders(nil)
			c.clients(func(r *request) any {
				seen[r.topic] = nil
				return queryResult{}
			})
			c.status(c.do("query", fields{"query": "state", "instance": "order-1"}), 0, "")
			c.clients(func(r *request) any {
				seen[r.topic] = nil
				return instanceOutcome{State: "completed"}
			})
			c.status(c.do("wait", fields{"instance": "order-1"}), 0, "")
			for _, topic := range []string{"start.checkout", "signal.paid", "cancel", "terminate", "query.state", "wait"} {
				if _, there := seen[topic+".by."+token]; !there || len(seen) != 6 {
					c.fail("%s of %q: not on %s.by.%s alone", topic, name, topic, token)
				}
			}
			c.finish()
		}
	}},
	{"client-vouched-refused", "a vouched name that is too long: INVALID, nothing is sent", func(c *env) {
		for _, name := range []string{strings.Repeat("x", 201), strings.Repeat("ü", 101)} {
			c.more, c.d = []string{"CONF_VOUCHED=" + name}, nil
			c.status(c.do("cancel", fields{"instance": "order-1"}), statusInvalid, "")
			c.finish()
		}
		c.locked(func() { c.same("requests", c.g.counts["client"], 0) })
	}},
	{"client-trace", "the trace of a request is in its headers, also of repetitions", func(c *env) {
		c.more = []string{"CONF_ACTOR=anna"}
		c.said(c.senders(fields{"traceparent": trace, "tracestate": "a=b"}), "anna", "", trace, "a=b")
		c.finish()
	}},
}

func (c *env) once() {
	c.locked(func() {
		if n := len(c.g.requests); n != 1 {
			c.fail("%d requests, not one", n)
		}
	})
}
