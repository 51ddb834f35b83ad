// The client and the worker of Temporal: main ADDRESS IN_FLIGHT SECONDS WARM_UP; see ../lib.sh for what it says.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"
)

const queue = "peers"

func Echo(_ context.Context, input string) (string, error) { return input, nil }

func Chain(ctx workflow.Context, input string) (string, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range 5 {
		if err := workflow.ExecuteActivity(ctx, Echo, input).Get(ctx, &input); err != nil {
			return "", err
		}
	}
	return input, nil
}

func run(c client.Client, input string) {
	var result string
	started, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: queue}, Chain, input)
	if err == nil {
		err = started.Get(context.Background(), &result)
	}
	if err != nil || result != input {
		log.Fatalf("%s: %q, %v", input, result, err)
	}
}

// load keeps so many workflows in flight for so long, and waits for those that were begun.
func load(c client.Client, inFlight int, length time.Duration) (latencies []float64, seconds float64) {
	var mutex sync.Mutex
	var group sync.WaitGroup
	begin := time.Now()
	for i := range inFlight {
		group.Go(func() {
			for n := 0; time.Since(begin) < length; n++ {
				called := time.Now()
				run(c, fmt.Sprintf("%d-%d", i, n))
				mutex.Lock()
				latencies = append(latencies, time.Since(called).Seconds()*1000)
				mutex.Unlock()
			}
		})
	}
	group.Wait()
	return latencies, time.Since(begin).Seconds()
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		log.Fatal(err)
	}
	return n
}

func makeNamespace(options client.Options) error {
	namespaces, err := client.NewNamespaceClient(options)
	if err != nil {
		return err
	}
	defer namespaces.Close()
	var exists *serviceerror.NamespaceAlreadyExists
	err = namespaces.Register(context.Background(), &workflowservice.RegisterNamespaceRequest{
		Namespace: "default", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
	if errors.As(err, &exists) {
		return nil
	}
	return err
}

func main() {
	inFlight := number(os.Args[2])
	options := client.Options{HostPort: os.Args[1]}
	if err := makeNamespace(options); err != nil {
		log.Fatal(err)
	}
	c, err := client.Dial(options)
	if err != nil {
		log.Fatal(err)
	}
	w := worker.New(c, queue, worker.Options{})
	w.RegisterWorkflow(Chain)
	w.RegisterActivity(Echo)
	if err := w.Start(); err != nil {
		log.Fatal(err)
	}
	lines := bufio.NewScanner(os.Stdin)
	load(c, inFlight, time.Duration(number(os.Args[4]))*time.Second)
	fmt.Println("ready")
	lines.Scan()
	latencies, seconds := load(c, inFlight, time.Duration(number(os.Args[3]))*time.Second)
	slices.Sort(latencies)
	n := len(latencies)
	fmt.Printf("done %d %f %f %f\n", n, seconds, latencies[n/2], latencies[n*99/100])
	lines.Scan() // until its CPU time has been read
}
