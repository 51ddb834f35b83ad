package main

import (
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// network is the NATS server of one case and, before it, a proxy that the driver connects to: it can freeze or cut.
type network struct {
	mu     sync.Mutex
	gate   *sync.Cond
	nats   *server.Server
	port   int
	listen net.Listener
	conns  map[net.Conn]bool
	frozen bool
	ended  bool
	cuts   int
}

func newNetwork() (*network, error) {
	n := &network{conns: map[net.Conn]bool{}, port: -1}
	n.gate = sync.NewCond(&n.mu)
	if err := n.startServer(); err != nil {
		return nil, err
	}
	var err error
	if n.listen, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, err
	}
	go n.accept()
	return n, nil
}

func (n *network) startServer() error {
	var lastErr error
	for try := 0; try < 50; try++ { // the port may still be in use for a moment
		srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: n.port, NoLog: true, NoSigs: true,
			MaxPayload: 1 << 20})
		if err != nil {
			return err
		}
		srv.Start()
		if srv.ReadyForConnections(2 * time.Second) {
			n.nats = srv
			n.port = srv.Addr().(*net.TCPAddr).Port
			return nil
		}
		srv.Shutdown()
		lastErr = fmt.Errorf("the embedded server does not start on port %d", n.port)
		time.Sleep(50 * time.Millisecond)
	}
	return lastErr
}

func (n *network) stopServer() {
	n.nats.Shutdown()
	n.nats.WaitForShutdown()
}

func (n *network) direct() string { return fmt.Sprintf("nats://127.0.0.1:%d", n.port) }
func (n *network) url() string    { return "nats://" + n.listen.Addr().String() }

func (n *network) accept() {
	for {
		conn, err := n.listen.Accept()
		if err != nil {
			return
		}
		go n.serve(conn)
	}
}

func (n *network) serve(client net.Conn) {
	n.wait()
	upstream, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", n.port))
	if err != nil {
		client.Close()
		return
	}
	n.mu.Lock()
	if n.ended {
		n.mu.Unlock()
		client.Close()
		upstream.Close()
		return
	}
	n.conns[client], n.conns[upstream] = true, true
	n.mu.Unlock()
	go n.copy(upstream, client)
	n.copy(client, upstream)
}

func (n *network) copy(to, from net.Conn) {
	buf := make([]byte, 64*1024)
	for {
		got, err := from.Read(buf)
		n.wait()
		if got > 0 {
			if _, werr := to.Write(buf[:got]); werr != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	to.Close()
	from.Close()
	n.mu.Lock()
	delete(n.conns, to)
	delete(n.conns, from)
	n.mu.Unlock()
}

func (n *network) wait() {
	n.mu.Lock()
	for n.frozen && !n.ended {
		n.gate.Wait()
	}
	n.mu.Unlock()
}

// freeze lets no byte through, and closes nothing.
func (n *network) freeze(on bool) {
	n.mu.Lock()
	n.frozen = on
	n.mu.Unlock()
	n.gate.Broadcast()
}

// cut closes the driver's connections.
func (n *network) cut() {
	n.mu.Lock()
	n.cuts++
	for conn := range n.conns {
		conn.Close()
	}
	n.mu.Unlock()
}

// hasInterest says whether somebody subscribes the subject.
func (n *network) hasInterest(subject string) bool {
	subs, err := n.nats.Subsz(&server.SubszOptions{Subscriptions: true, Test: subject, Limit: 10})
	return err == nil && subs.Total > 0
}

func (n *network) end() {
	n.mu.Lock()
	n.ended = true
	n.mu.Unlock()
	n.gate.Broadcast()
	n.listen.Close()
	n.cut()
	n.stopServer()
}
