// Pay charges the cards of the web shop.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"thole.dev/go"
)

func main() {
	log.SetFlags(0)
	nc, err := nats.Connect(os.Getenv("THOLE_NATS_URL"), nats.MaxReconnects(-1))
	if err != nil {
		log.Fatal(err)
	}
	defer nc.Close()
	worker := thole.NewWorker(nc, thole.Options{Namespace: os.Getenv("THOLE_NAMESPACE"), Queue: "payments"})
	worker.Register("charge", charge)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// charge is a card that takes its time. A real one would send task.Key along, so that it is charged once however often this
// runs. It prints when it begins and ends, by the wall clock, so that the shop's clock can be compared.
func charge(ctx context.Context, task *thole.Task) ([]byte, error) {
	var order struct {
		PayMs int `json:"pay_ms"`
	}
	if err := json.Unmarshal(task.Input, &order); err != nil {
		return nil, &thole.Failure{Text: err.Error(), Type: "order", Final: true}
	}
	fmt.Printf("charging %s at_us=%d\n", task.Instance, time.Now().UnixMicro())
	select {
	case <-time.After(time.Duration(order.PayMs) * time.Millisecond):
		fmt.Printf("charged %s at_us=%d\n", task.Instance, time.Now().UnixMicro())
		return []byte("charged"), nil
	case <-ctx.Done():
		fmt.Printf("stopped %s at_us=%d\n", task.Instance, time.Now().UnixMicro())
		return nil, ctx.Err()
	}
}
