// Conformance-driver is what clients/conformance tests this client with: its README.md says what it must do.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"thole.dev/go"
)

func main() {
	nc, err := nats.Connect(os.Getenv("NATS_URL"), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err == nil {
		if os.Getenv("CONF_MODE") == "client" {
			c := thole.NewClient(nc, os.Getenv("THOLE_NAMESPACE"))
			c.Actor = cmp.Or(os.Getenv("CONF_ACTOR"), c.Actor)
			c.VouchedActor = os.Getenv("CONF_VOUCHED")
			c.Name = cmp.Or(os.Getenv("CONF_CLIENT"), c.Name)
			if ms, err := strconv.Atoi(os.Getenv("CONF_WAIT_MS")); err == nil {
				c.WaitLimit = time.Duration(ms) * time.Millisecond
			}
			client(c)
			return
		}
		err = work(nc)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func work(nc *nats.Conn) error {
	worker := thole.NewWorker(nc, thole.Options{Namespace: os.Getenv("THOLE_NAMESPACE"), Queue: os.Getenv("THOLE_QUEUE"),
		Name: "conf-worker", Slots: 4, CloseLimit: 3 * time.Second, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	worker.Register("echo", func(_ context.Context, t *thole.Task) ([]byte, error) { return t.Input, nil })
	worker.Register("bytes", func(_ context.Context, t *thole.Task) ([]byte, error) {
		slices.Reverse(t.Input)
		return t.Input, nil
	})
	worker.Register("big", func(_ context.Context, t *thole.Task) ([]byte, error) {
		return bytes.Repeat([]byte("x"), number(t)), nil
	})
	worker.Register("fail", func(_ context.Context, t *thole.Task) ([]byte, error) {
		return nil, &thole.Failure{Text: "no", Type: "declined", Final: string(t.Input) == "final"}
	})
	worker.Register("throw", func(_ context.Context, t *thole.Task) ([]byte, error) { return nil, errors.New(string(t.Input)) })
	worker.Register("notify", func(_ context.Context, t *thole.Task) ([]byte, error) {
		if err := t.Heartbeat(t.Input); err != nil {
			return nil, err
		}
		return nil, &thole.Failure{Text: "no", Type: "declined"}
	})
	worker.Register("hangup", func(_ context.Context, t *thole.Task) ([]byte, error) {
		nc.Close()
		return t.Input, nil
	})
	worker.Register("panic", func(context.Context, *thole.Task) ([]byte, error) { panic("on purpose") })
	worker.Register("sleep", func(ctx context.Context, t *thole.Task) ([]byte, error) {
		return t.Input, pause(ctx, t, time.Duration(number(t))*time.Millisecond)
	})
	worker.Register("stubborn", func(_ context.Context, t *thole.Task) ([]byte, error) {
		time.Sleep(time.Duration(number(t)) * time.Millisecond)
		return []byte("done"), nil
	})
	worker.Register("beat", func(ctx context.Context, t *thole.Task) ([]byte, error) {
		for i := 1; i <= number(t); i++ {
			if err := t.Heartbeat([]byte(strconv.Itoa(i))); err != nil {
				return nil, err
			}
			if err := pause(ctx, t, 50*time.Millisecond); err != nil {
				return nil, err
			}
		}
		return t.Input, nil
	})
	worker.Register("resume", func(_ context.Context, t *thole.Task) ([]byte, error) { return t.Details, nil })
	worker.Register("key", func(_ context.Context, t *thole.Task) ([]byte, error) { return []byte(t.Key), nil })
	worker.Register("trace", func(_ context.Context, t *thole.Task) ([]byte, error) {
		return []byte(t.Traceparent + " " + t.Tracestate), nil
	})
	worker.Register("json", thole.JSON(func(_ context.Context, _ *thole.Task, in value) (value, error) {
		return value{in.N + 1, in.Text + "!"}, nil
	}))
	worker.Register("later", func(_ context.Context, t *thole.Task) ([]byte, error) {
		text, _ := json.Marshal(map[string]any{"event": "later", "instance": t.Instance, "token": t.Token})
		fmt.Println(string(text))
		return nil, thole.ErrLater
	})
	worker.Register("deadline", func(ctx context.Context, t *thole.Task) ([]byte, error) {
		if end, limited := ctx.Deadline(); limited {
			return []byte(strconv.FormatInt(time.Until(end).Milliseconds(), 10)), nil
		}
		return []byte("none"), nil
	})
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second SIGTERM kills
	return worker.Run(ctx)
}

type value struct {
	N    int    `json:"n"`
	Text string `json:"text"`
}

func number(t *thole.Task) int {
	n, _ := strconv.Atoi(string(t.Input))
	return n
}

func pause(ctx context.Context, t *thole.Task, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
	}
	if why, ok := context.Cause(ctx).(*thole.Cancelled); ok {
		text, _ := json.Marshal(map[string]any{"event": "cancelled", "instance": t.Instance, "kind": why.Kind, "reason": why.Reason,
			"grace_ms": why.Grace.Milliseconds()})
		fmt.Println(string(text))
	}
	return ctx.Err()
}

type command struct {
	ID            int    `json:"id"`
	Op            string `json:"op"`
	TimeoutMs     int64  `json:"timeout_ms"`
	Orchestration string `json:"orchestration"`
	Instance      string `json:"instance"`
	Input         []byte `json:"input"`
	Version       uint32 `json:"version"`
	Output        []byte `json:"output"`
	Event         string `json:"event"`
	Query         string `json:"query"`
	Reason        string `json:"reason"`
	RequireKnown  bool   `json:"require_known"`
	EventData     []byte `json:"event_data"`
	Token         string `json:"token"`
	Text          string `json:"text"`
	ErrorType     string `json:"error_type"`
	Traceparent   string `json:"traceparent"`
	Tracestate    string `json:"tracestate"`
	listed
}

type listed struct {
	States          []string `json:"states"`
	IDPrefix        string   `json:"id_prefix"`
	Parent          string   `json:"parent"`
	Limit           uint32   `json:"limit"`
	BehindInstance  string   `json:"behind_instance"`
	BehindCreatedMs uint64   `json:"behind_created_ms"`
}

type result struct {
	ID        int          `json:"id"`
	Status    thole.Status `json:"status"`
	Text      string       `json:"text"`
	Instance  string       `json:"instance"`
	Output    []byte       `json:"output"`
	State     string       `json:"state"`
	ErrorType string       `json:"error_type"`
	Reason    string       `json:"reason"`
	NextStep  string       `json:"next_step"`
	Note      string       `json:"note"`
	Instances []string     `json:"instances"`
}

func client(c *thole.Client) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var command command
		if err := json.Unmarshal(lines.Bytes(), &command); err != nil {
			fmt.Fprintln(os.Stderr, "error:", err)
			continue
		}
		text, _ := json.Marshal(do(c, &command))
		fmt.Println(string(text))
	}
}

func do(c *thole.Client, command *command) result {
	ctx := context.Background()
	if command.TimeoutMs > 0 {
		limited, cancel := context.WithTimeout(ctx, time.Duration(command.TimeoutMs)*time.Millisecond)
		defer cancel()
		ctx = limited
	}
	r := result{ID: command.ID, Instance: command.Instance}
	c.Trace = func(_ context.Context, carrier map[string]string) {
		carrier["traceparent"], carrier["tracestate"] = command.Traceparent, command.Tracestate
	}
	c.Noted = func(_, note string) { r.Note = note }
	var err error
	switch command.Op {
	case "start":
		r.Instance, err = c.Start(ctx, command.Orchestration, command.Input, thole.StartOptions{Instance: command.Instance,
			Version: command.Version, RequireKnown: command.RequireKnown, Event: command.Event, EventData: command.EventData})
	case "signal":
		err = c.Signal(ctx, command.Instance, command.Event, command.Input)
	case "cancel":
		err = c.Cancel(ctx, command.Instance, command.Reason)
	case "terminate":
		err = c.Terminate(ctx, command.Instance, command.Reason)
	case "query":
		r.Output, err = c.Query(ctx, command.Instance, command.Query, command.Input)
	case "wait":
		var outcome *thole.Outcome
		if outcome, err = c.Wait(ctx, command.Instance); err == nil {
			r.Status, r.Text, r.State, r.ErrorType, r.Output = outcome.Status, outcome.Text, outcome.State, outcome.ErrorType, outcome.Output
		}
	case "describe":
		var found *thole.Instance
		if found, err = c.Describe(ctx, command.Instance); err == nil {
			r.State, r.Reason = found.State, found.Reason
			for _, first := range found.Hindrances[:min(len(found.Hindrances), 1)] {
				r.NextStep = first.NextStep
			}
		}
	case "list":
		var page []thole.Instance
		l := command.listed
		page, err = c.List(ctx, thole.ListOptions{States: l.States, Orchestration: command.Orchestration, IDPrefix: l.IDPrefix, Parent: l.Parent,
			Limit: l.Limit, BehindInstance: l.BehindInstance, BehindCreatedMs: l.BehindCreatedMs})
		for _, one := range page {
			r.Instances = append(r.Instances, one.ID)
		}
	case "complete":
		err = c.CompleteActivity(ctx, command.Token, command.Output)
	case "fail":
		err = c.FailActivity(ctx, command.Token, thole.Failure{Text: command.Text, Type: command.ErrorType})
	}
	if err != nil {
		r.Status, r.Text = thole.StatusOf(err), err.Error()
		var told *thole.Error
		if errors.As(err, &told) {
			r.State, r.Reason, r.NextStep = told.State, told.Reason, told.NextStep
		}
	}
	return r
}
