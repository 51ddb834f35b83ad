package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// traffic is what a case saw, for its report.
type traffic struct {
	mu    sync.Mutex
	start time.Time
	lines []string
	left  int // out
}

const trafficLines, trafficBytes = 400, 240

func (l *traffic) add(text string) {
	if len(text) > trafficBytes {
		text = fmt.Sprintf("%s… (%d bytes)", text[:trafficBytes], len(text))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%8.3f %s", time.Since(l.start).Seconds(), text))
	if len(l.lines) > trafficLines {
		l.lines = append(l.lines[:trafficLines/2], l.lines[trafficLines/2+1:]...)
		l.left++
	}
}

func (l *traffic) text() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := append([]string(nil), l.lines...)
	if l.left > 0 {
		lines[trafficLines/2] = fmt.Sprintf("         … %d lines are left out", l.left+1)
	}
	return lines
}

// event is a line that the driver printed: of a cancelled task, or a client's result.
type event struct {
	Event     string   `json:"event"`
	Instance  string   `json:"instance"`
	Kind      string   `json:"kind"`
	Reason    string   `json:"reason"`
	GraceMs   int64    `json:"grace_ms"`
	ID        int      `json:"id"`
	Status    int      `json:"status"`
	Text      string   `json:"text"`
	Output    []byte   `json:"output"`
	State     string   `json:"state"`
	ErrorType string   `json:"error_type"`
	NextStep  string   `json:"next_step"`
	Note      string   `json:"note"`
	Token     string   `json:"token"`
	Instances []string `json:"instances"`
	at        time.Time
}

// driver is the process of the client under test.
type driver struct {
	mu     sync.Mutex
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	events []event
	stderr []string
	done   chan struct{}
	code   int
	log    *traffic
}

func startDriver(command []string, mode, url string, more []string, log *traffic) (*driver, error) {
	d := &driver{done: make(chan struct{}), log: log}
	d.cmd = exec.Command(command[0], command[1:]...)
	d.cmd.Env = append(os.Environ(), "NATS_URL="+url, "THOLE_NAMESPACE="+namespace, "THOLE_QUEUE=conf", "CONF_MODE="+mode, "THOLE_ACTOR=", "CONF_ACTOR=", "CONF_VOUCHED=", "CONF_CLIENT=", "CONF_WAIT_MS=")
	d.cmd.Env = append(d.cmd.Env, more...)
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if d.stdin, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err = d.cmd.Start(); err != nil {
		return nil, err
	}
	var readers sync.WaitGroup
	readers.Add(2)
	go d.read(stdout, &readers, d.line)
	go d.read(stderr, &readers, d.errorLine)
	go func() {
		readers.Wait()
		d.cmd.Wait()
		d.mu.Lock()
		d.code = d.cmd.ProcessState.ExitCode()
		d.mu.Unlock()
		log.add(fmt.Sprintf("-- the driver ended: %v", d.cmd.ProcessState))
		close(d.done)
	}()
	return d, nil
}

func (d *driver) read(from io.Reader, readers *sync.WaitGroup, take func(string)) {
	defer readers.Done()
	lines := bufio.NewReaderSize(from, 4096)
	for {
		text, err := lines.ReadString('\n')
		if text = strings.TrimRight(text, "\r\n"); text != "" {
			take(text)
		}
		if err != nil {
			return
		}
	}
}

func (d *driver) line(text string) {
	d.log.add("-- stdout: " + text)
	var e event
	if json.Unmarshal([]byte(text), &e) != nil {
		return
	}
	e.at = time.Now()
	d.mu.Lock()
	d.events = append(d.events, e)
	d.mu.Unlock()
}

func (d *driver) errorLine(text string) {
	d.log.add("-- stderr: " + text)
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.stderr) < 2000 {
		d.stderr = append(d.stderr, text)
	}
}

func (d *driver) errorText() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.stderr, "\n")
}

func (d *driver) seen(match func(e event) bool) *event {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i := range d.events {
		if match(d.events[i]) {
			found := d.events[i]
			return &found
		}
	}
	return nil
}

func (d *driver) signal(s syscall.Signal) {
	d.log.add("-- " + s.String())
	d.cmd.Process.Signal(s)
}

func (d *driver) ended() bool {
	select {
	case <-d.done:
		return true
	default:
		return false
	}
}

// kill ends the driver and what it started: they are one process group.
func (d *driver) kill() {
	if !d.ended() {
		syscall.Kill(-d.cmd.Process.Pid, syscall.SIGKILL)
	}
	select {
	case <-d.done:
	case <-time.After(5 * time.Second):
	}
}
