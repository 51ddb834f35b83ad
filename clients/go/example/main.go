// Example serves the activities of the orchestration checkout (examples/checkout.c) in Go.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"thole.dev/go"
)

func main() {
	url := os.Getenv("THOLE_NATS_URL")
	if url == "" {
		url = nats.DefaultURL
	}
	nc, err := nats.Connect(url, nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	worker := thole.NewWorker(nc, thole.Options{Namespace: os.Getenv("THOLE_NAMESPACE"), Queue: os.Getenv("THOLE_QUEUE")})
	worker.Register("reserve", reserve)
	worker.Register("charge", charge)
	worker.Register("ship", ship)
	worker.Register("release", undo)
	worker.Register("refund", undo)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// field is the number behind "key=" in "order=17;pay_ms=50".
func field(text []byte, key string, fallback int) int {
	for _, part := range strings.Split(string(text), ";") {
		if value, ok := strings.CutPrefix(part, key+"="); ok {
			if n, err := strconv.Atoi(value); err == nil {
				return n
			}
		}
	}
	return fallback
}

func reserve(_ context.Context, task *thole.Task) ([]byte, error) {
	return fmt.Appendf(nil, "goods-%d", field(task.Input, "order", 0)), nil
}

// charge is a card that takes its time. A real one would send task.Key along, so that it is charged once however often
// this runs.
func charge(ctx context.Context, task *thole.Task) ([]byte, error) {
	if int(task.Try) <= field(task.Input, "busy", 0) {
		return nil, fmt.Errorf("the bank does not answer")
	}
	select {
	case <-time.After(time.Duration(field(task.Input, "pay_ms", 50)) * time.Millisecond):
	case <-ctx.Done():
		log.Printf("charge of %s: %v", task.Instance, context.Cause(ctx))
		return nil, ctx.Err()
	}
	if field(task.Input, "declined", 0) != 0 {
		return nil, &thole.Failure{Text: "the card was declined", Type: "declined", Final: true}
	}
	return []byte("charged"), nil
}

func ship(_ context.Context, task *thole.Task) ([]byte, error) {
	return fmt.Appendf(nil, "parcel with %s", task.Input), nil
}

// undo must do nothing for what was never done. It only says that it was here.
func undo(_ context.Context, task *thole.Task) ([]byte, error) {
	return fmt.Appendf(nil, "%s of order %d", task.Activity, field(task.Input, "order", 0)), nil
}
