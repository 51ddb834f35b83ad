// Conformance plays the gateway of docs/gateway.md and a hostile network against a client library: README.md.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path"
	"runtime/debug"
	"sort"
	"strings"
	"sync"
	"time"
)

var slow float64

// tolerance is what two sides may disagree about because messages are on their way.
func tolerance() time.Duration { return scaled(600 * time.Millisecond) }

func scaled(d time.Duration) time.Duration { return time.Duration(float64(d) * slow) }

// testCase is one: what it is called, what must hold, and how it is tried.
type testCase struct {
	name string
	what string
	run  func(c *env)
}

type result struct {
	Name    string   `json:"name"`
	OK      bool     `json:"ok"`
	Reason  string   `json:"reason,omitempty"`
	Seconds float64  `json:"seconds"`
	Traffic []string `json:"traffic,omitempty"`
}

func matches(patterns, name string) bool {
	for _, pattern := range strings.Split(patterns, ",") {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

func main() {
	only := flag.String("only", "", "cases to run, separated by commas; * matches anything")
	skip := flag.String("skip", "", "cases not to run")
	list := flag.Bool("list", false, "print the cases and end")
	asJSON := flag.Bool("json", false, "print a JSON object a case")
	jobs := flag.Int("jobs", 8, "cases at a time")
	verbose := flag.Bool("verbose", false, "print the traffic of cases that are ok, too")
	flag.Float64Var(&slow, "slow", 1, "multiplies the limits of time")
	flag.Parse()
	var chosen []testCase
	for _, one := range cases() {
		if (*only == "" || matches(*only, one.name)) && (*skip == "" || !matches(*skip, one.name)) {
			chosen = append(chosen, one)
		}
	}
	if *list {
		for _, one := range chosen {
			fmt.Printf("%-28s %s\n", one.name, one.what)
		}
		return
	}
	if flag.NArg() == 0 || len(chosen) == 0 || *jobs < 1 {
		fmt.Fprintln(os.Stderr, "usage: conformance [--list] [--only A,B] [--skip A,B] [--json] [--jobs N] [--verbose] [--slow N] -- COMMAND ARGS…")
		os.Exit(2)
	}
	os.Exit(runAll(chosen, flag.Args(), *jobs, *asJSON, *verbose))
}

func runAll(chosen []testCase, command []string, jobs int, asJSON, verbose bool) int {
	var group sync.WaitGroup
	var mu sync.Mutex
	var failed []string
	slots := make(chan struct{}, jobs)
	for _, one := range chosen {
		slots <- struct{}{}
		group.Add(1)
		go func() {
			defer group.Done()
			got := runCase(one, command)
			<-slots
			mu.Lock()
			defer mu.Unlock()
			if !got.OK {
				failed = append(failed, one.name)
			}
			report(got, asJSON, verbose)
		}()
	}
	group.Wait()
	if !asJSON {
		if sort.Strings(failed); len(failed) > 0 {
			fmt.Printf("failed: %s\n", strings.Join(failed, ","))
		}
		fmt.Printf("%d passed, %d failed\n", len(chosen)-len(failed), len(failed))
	}
	if len(failed) > 0 {
		return 1
	}
	return 0
}

func report(got result, asJSON, verbose bool) {
	if got.OK && !verbose {
		got.Traffic = nil
	}
	if asJSON {
		text, _ := json.Marshal(got)
		fmt.Println(string(text))
		return
	}
	if got.OK {
		fmt.Printf("ok   %s (%.1f s)\n", got.Name, got.Seconds)
	} else {
		fmt.Printf("FAIL %s: %s (%.1f s)\n", got.Name, got.Reason, got.Seconds)
	}
	for _, line := range got.Traffic {
		fmt.Println("     " + line)
	}
}

func runCase(one testCase, command []string) (got result) {
	start := time.Now()
	c := &env{command: command, log: &traffic{start: start}}
	defer func() {
		if r := recover(); r != nil {
			if _, expected := r.(failure); !expected {
				c.fail("the kit itself failed: %v\n%s", r, debug.Stack())
			}
		}
		c.end()
		got = result{Name: one.name, OK: len(c.reasons) == 0, Reason: strings.Join(c.reasons, "; "), Seconds: time.Since(start).Seconds(),
			Traffic: c.log.text()}
	}()
	c.setUp()
	one.run(c)
	c.tearDown()
	return
}
