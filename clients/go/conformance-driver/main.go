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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second SIGTERM kills
	return worker.Run(ctx)
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
	Event         string `json:"event"`
	Query         string `json:"query"`
	Reason        string `json:"reason"`
	Traceparent   string `json:"traceparent"`
	Tracestate    string `json:"tracestate"`
}

type result struct {
	ID        int          `json:"id"`
	Status    thole.Status `json:"status"`
	Text      string       `json:"text"`
	Instance  string       `json:"instance"`
	Output    []byte       `json:"output"`
	State     string       `json:"state"`
	ErrorType string       `json:"error_type"`
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
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(command.TimeoutMs)*time.Millisecond)
	defer cancel()
	r := result{ID: command.ID, Instance: command.Instance}
	c.Trace = func(_ context.Context, carrier map[string]string) {
		carrier["traceparent"], carrier["tracestate"] = command.Traceparent, command.Tracestate
	}
	var err error
	switch command.Op {
	case "start":
		r.Instance, err = c.Start(ctx, command.Orchestration, command.Input, thole.StartOptions{Instance: command.Instance,
			Version: command.Version})
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
	}
	if err != nil {
		r.Status, r.Text = thole.StatusOf(err), err.Error()
	}
	return r
}
