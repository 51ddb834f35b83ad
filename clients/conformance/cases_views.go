package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"time"
)

// What a client sees of instances that do not go on, and what it asks for besides: clients.

var viewCases = []testCase{
	{"client-start-known", "start with requireKnown: it is sent, and NOT_FOUND is a result", func(c *env) {
		c.clients(func(r *request) any {
			got := asked[startInstance](c, r)
			if got.RequireKnown != (got.Instance == "known") {
				c.g.problem("requireKnown is %v for %s", got.RequireKnown, got.Instance)
			}
			if got.RequireKnown {
				return plain{statusNotFound, "no engine knows orchestration chekout; did you mean checkout?"}
			}
			return instanceStarted{Instance: got.Instance}
		})
		c.status(c.do("start", fields{"orchestration": "chekout", "instance": "known", "require_known": true}), statusNotFound, "did you mean checkout?")
		c.once()
		c.status(c.do("start", fields{"orchestration": "chekout", "instance": "any"}), 0, "")
		c.finish()
	}},
	{"client-start-event", "start with an event: subject, fields, the same request id when it is repeated; CONFLICT", func(c *env) {
		ids := map[string]int{}
		c.clients(func(r *request) any {
			got := asked[startInstance](c, r)
			ids[got.RequestID]++
			got.RequestID = ""
			c.same("subject", r.topic, "start_event.checkout~paid")
			if got.Instance == "ended" {
				return plain{statusConflict, "it has ended"}
			}
			c.same("request", got, startInstance{Instance: "order-1", Input: []byte("in"), EventData: []byte("\x00\xff")})
			if r.n == 1 {
				return nil
			}
			return instanceStarted{Instance: "order-1"}
		})
		more := fields{"orchestration": "checkout", "instance": "order-1", "input": b64("in"), "event": "paid", "event_data": b64("\x00\xff"), "timeout_ms": 30000}
		e := c.do("start", more)
		c.status(e, 0, "")
		c.same("instance", e.Instance, "order-1")
		if len(ids) != 1 || ids[""] > 0 {
			c.fail("request ids %v", ids)
		}
		c.status(c.do("start", fields{"orchestration": "checkout", "instance": "ended", "event": "paid"}), statusConflict, "ended")
		c.finish()
	}},
	{"client-start-event-vouched", "start with an event, by a name that NATS vouches for", func(c *env) {
		c.more = []string{"CONF_VOUCHED=alice"}
		c.clients(func(r *request) any {
			c.same("subject", r.topic, "start_event.checkout~paid.by.alice")
			return instanceStarted{Instance: "order-1"}
		})
		c.status(c.do("start", fields{"orchestration": "checkout", "instance": "order-1", "event": "paid"}), 0, "")
		for _, event := range []string{"a.b", "a~b", "a b"} {
			c.status(c.do("start", fields{"orchestration": "checkout", "instance": "order-1", "event": event}), statusInvalid, "")
		}
		c.once()
		c.finish()
	}},
	{"client-describe", "describe: subject, fields, what keeps it from going on; NOT_FOUND", func(c *env) {
		c.clients(func(r *request) any {
			got := asked[describeInstance](c, r)
			c.same("subject", r.topic, "describe")
			switch got.Instance {
			case "none":
				return instanceDescription{Status: statusNotFound, Text: "there is none"}
			case "well":
				return instanceDescription{Info: &instanceInfo{Instance: "well", Orchestration: "checkout", Execution: 1<<53 + 1, State: "running"}}
			}
			return instanceDescription{Info: &instanceInfo{Instance: got.Instance, Orchestration: "checkout", Version: 2, Execution: 3, State: "waiting",
				Reason: "no_code", Detail: "kein Code ü", CustomStatus: "half", CreatedMs: 1700000000000},
				Hindrances: []hindrance{{"no_code", "the instance waits for code", "start the program ü"}, {"no_engine", "no engine", "start one"}}}
		})
		e := c.do("describe", fields{"instance": "order-1"})
		c.status(e, 0, "")
		c.same("state", e.State, "waiting")
		c.same("reason", e.Reason, "no_code")
		c.same("next step", e.NextStep, "start the program ü")
		e = c.do("describe", fields{"instance": "well"})
		c.status(e, 0, "")
		c.same("state", e.State, "running")
		c.same("next step", e.NextStep, "")
		c.status(c.do("describe", fields{"instance": "none"}), statusNotFound, "none")
		c.finish()
	}},
	{"client-list", "list: subject, fields, ids in their order; a page behind an instance; INVALID", func(c *env) {
		var got []listInstances
		c.clients(func(r *request) any {
			one := asked[listInstances](c, r)
			one.States = append([]string(nil), one.States...)
			got = append(got, one)
			c.same("subject", r.topic, "list")
			if len(one.States) > 0 && one.States[0] == "no" {
				return instanceList{Status: statusInvalid, Text: "there is no state no"}
			}
			if one.BehindInstance != "" {
				return instanceList{}
			}
			return instanceList{Instances: []instanceInfo{{Instance: "order-2", State: "stuck", CreatedMs: 1700000000001}, {Instance: "order ü", State: "waiting",
				CreatedMs: 1700000000000}}}
		})
		e := c.do("list", fields{"states": []string{"waiting", "stuck"}, "orchestration": "checkout", "id_prefix": "order", "parent": "p", "limit": 2})
		c.status(e, 0, "")
		c.same("instances", e.Instances, []string{"order-2", "order ü"})
		e = c.do("list", fields{"behind_instance": "order ü", "behind_created_ms": 1700000000000})
		c.status(e, 0, "")
		if len(e.Instances) > 0 {
			c.fail("instances %v behind the last one", e.Instances)
		}
		c.status(c.do("list", fields{"states": []string{"no"}}), statusInvalid, "no state")
		c.locked(func() {
			c.same("requests", got[:2], []listInstances{{States: []string{"waiting", "stuck"}, Orchestration: "checkout", IDPrefix: "order", Parent: "p", Limit: 2},
				{BehindInstance: "order ü", BehindCreatedMs: "1700000000000"}})
		})
		c.finish()
	}},
	{"client-complete", "complete and fail by a token: subject, fields, INVALID; repeated without an answer", func(c *env) {
		var got []completeActivity
		c.clients(func(r *request) any {
			one := asked[completeActivity](c, r)
			one.Output = append([]byte(nil), one.Output...)
			got = append(got, one)
			c.same("subject", r.topic, "complete_activity")
			if r.n == 1 {
				return nil
			}
			if one.Token == "bad" {
				return plain{statusInvalid, "this is not a token"}
			}
			return plain{}
		})
		c.status(c.do("complete", fields{"token": "7.ü", "output": b64("\x00\xff"), "timeout_ms": 30000}), 0, "")
		c.status(c.do("fail", fields{"token": "8", "text": "no ü", "error_type": "declined"}), 0, "")
		c.status(c.do("complete", fields{"token": "bad"}), statusInvalid, "not a token")
		done := completeActivity{Token: "7.ü", Output: []byte("\x00\xff")}
		c.locked(func() {
			c.same("requests", got, []completeActivity{done, done, {Token: "8", Failure: &taskFailure{Text: "no ü", Type: "declined"}}, {Token: "bad"}})
		})
		c.finish()
	}},
	{"client-wait-explained", "wait that ends with TIMEOUT says state, why, and what would help; only the last request asks for that", func(c *env) {
		c.clients(func(r *request) any {
			got := asked[waitInstance](c, r)
			if got.Instance == "long" {
				if got.Explain {
					c.g.problem("explain with 60 s left, and wait_ms %d", got.WaitMs)
				}
				return instanceOutcome{State: "completed"}
			}
			if !got.Explain {
				c.g.problem("no explain in the last request, wait_ms %d", got.WaitMs)
			}
			time.AfterFunc(time.Duration(got.WaitMs)*time.Millisecond, func() {
				c.locked(func() {
					r.answer(instanceOutcome{Status: statusTimeout, Text: "activity charge waits: nobody serves ü", State: "waiting", Reason: "no_worker",
						NextStep: "start a worker ü"})
				})
			})
			return nil
		})
		c.status(c.do("wait", fields{"instance": "long", "timeout_ms": 60000}), 0, "")
		e := c.do("wait", fields{"instance": "order-1", "timeout_ms": 2000})
		c.status(e, statusTimeout, "nobody serves ü")
		c.same("state", e.State, "waiting")
		c.same("reason", e.Reason, "no_worker")
		c.same("next step", e.NextStep, "start a worker ü")
		c.finish()
	}},
	{"client-wait-default", "wait without a limit ends with TIMEOUT after the client's own", func(c *env) {
		c.more = []string{"CONF_WAIT_MS=2000"}
		c.clients(func(r *request) any {
			got := asked[waitInstance](c, r)
			time.AfterFunc(time.Duration(got.WaitMs)*time.Millisecond, func() {
				c.locked(func() { r.answer(instanceOutcome{Status: statusTimeout, Text: "it waits", State: "stuck"}) })
			})
			return nil
		})
		c.send("wait", fields{"instance": "warm-up", "timeout_ms": 100})
		c.result(c.results, forStart)
		begin := time.Now()
		e := c.do("wait", fields{"instance": "order-1", "timeout_ms": 0})
		c.status(e, statusTimeout, "it waits")
		c.same("state", e.State, "stuck")
		if took := time.Since(begin); took < 1500*time.Millisecond || took > scaled(3500*time.Millisecond) {
			c.fail("it took %v, not 2 s", took)
		}
		c.finish()
	}},
}

// What a worker can do with a task besides: values in JSON, completion from outside, its deadline.

var handlerCases = []testCase{
	{"json", "an activity of JSON: a value in, a value out", func(c *env) {
		c.worker()
		got := c.outcome(c.give("json", ` {"n": 41, "text": "grüße 漢"} `), 8*time.Second)
		var value struct {
			N    int
			Text string
		}
		strict := json.NewDecoder(bytes.NewReader(got.Output))
		strict.DisallowUnknownFields()
		if err := strict.Decode(&value); err != nil || got.Failure != nil || value.N != 42 || value.Text != "grüße 漢!" {
			c.fail("the outcome is %s: %q", short(got), got.Output)
		}
	}},
	{"json-bad", "an input that is no JSON is a final failure of type bad_input", func(c *env) {
		c.worker()
		for _, input := range []string{"", "{", "\xff", `{"n":"x"}{`} {
			got := c.outcome(c.give("json", input), 8*time.Second)
			if got.Failure == nil || !got.Failure.Final || got.Failure.Type != "bad_input" || got.Failure.Text == "" {
				c.fail("the outcome of %q is %s", input, short(got))
			}
		}
		c.echo()
	}},
	{"later", "a task that is completed later: its outcome says so and nothing else, the handler has the token, the slot is free", func(c *env) {
		s := c.worker()
		for i := 0; i < 6; i++ {
			t := c.give("later", "")
			got := c.outcome(t, 8*time.Second)
			if !got.Later || got.Failure != nil || got.Cancelled || len(got.Output) > 0 {
				c.fail("the outcome is %s", short(got))
			}
			c.until(time.Second, "the event with the token", func() bool {
				return c.d.seen(func(e event) bool {
					return e.Event == "later" && e.Instance == t.wire.Instance && e.Token == t.wire.Token
				}) != nil
			})
		}
		c.until(3*time.Second, "renewals without them", func() bool {
			last := s.requests[len(s.requests)-1]
			return last.op == "renew" && len(last.renew.Running) == 0
		})
		c.echo()
	}},
	{"later-without-token", "a task without a token cannot be completed later: a final failure of type no_token", func(c *env) {
		c.worker()
		t := c.task("later", "")
		t.wire.Token = ""
		c.enqueue(t)
		got := c.outcome(t, 8*time.Second)
		if got.Later || got.Failure == nil || !got.Failure.Final || got.Failure.Type != "no_token" {
			c.fail("the outcome is %s", short(got))
		}
		c.echo()
	}},
	{"deadline", "a handler knows how long it may take", func(c *env) {
		c.worker()
		t := c.task("deadline", "")
		t.wire.TimeoutMs = 60000
		c.enqueue(t)
		if ms, err := strconv.Atoi(string(c.outcome(t, 8*time.Second).Output)); err != nil || ms > 60000 || ms < 50000 {
			c.fail("its deadline is in %d ms: %v", ms, err)
		}
		c.expectOutput(c.give("deadline", ""), []byte("none"))
	}},
}
