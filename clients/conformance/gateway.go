package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
)

const namespace = "conf"

// printable is what a header may have: clients of some languages refuse others.
var printable = func() (all string) {
	for c := ' '; c <= '~'; c++ {
		all += string(c)
	}
	return
}()

// request is one request of the client under test, on its way through the gateway.
type request struct {
	g     *gateway
	op    string // open, next, renew, complete, close, or client
	topic string // of a client's: start.checkout
	sess  *session
	n     int // the how manieth of its op in the session, from 1
	at    time.Time
	msg   *nats.Msg

	open     openSession
	next     nextTasks
	renew    renewTasks
	complete completeTasks
	close    closeSession
}

// task is one of the gateway, with what happened to it.
type task struct {
	wire      taskWire
	sess      *session // that it was handed to
	given     time.Time
	answered  time.Time // its complete
	finished  bool      // its complete was received
	outcomes  []outcome
	refused   bool        // the last one is: another one may follow
	times     []time.Time // of the outcomes
	notice    *notice     // told in each renewal
	gone      bool        // not the session's any more
	lost      bool        // and it has been told so, or its lease is over: nothing may be sent for it
	maybe     bool        // the answer with it may not have arrived
	beats     []string    // heartbeats received
	delivered int
}

// session is one as the gateway knows it.
type session struct {
	id, subject string
	open        openSession
	opened      time.Time
	counts      map[string]int
	parked      *request
	parkedCuts  int
	timer       *time.Timer
	tasks       []*task
	closing     *request
	asked       bool // next waited when close came
	closedAt    time.Time
	closed      bool
	dead        bool // unknown to the gateway from now on
	lastRenew   time.Time
	renewed     time.Time // when the last renewal that was answered, or the open, came
	next        *session  // that resumes it
	leaseMs     uint32
	requests    []*request
	sub         *nats.Subscription
}

// gateway is the one that the client under test talks to. hook may take a request over: it returns true then.
type gateway struct {
	mu       sync.Mutex
	nc       *nats.Conn
	net      *network
	log      *traffic
	sessions []*session
	queue    []*task
	all      []*task
	counts   map[string]int
	hook     func(r *request) bool
	clients  func(r *request) any // answers a client's request; nil: nothing
	problems []string
	random   *rand.Rand

	leaseMs, renewMs, graceMs uint32
	payloadMax                uint64
	detailsMax                uint32
	prefix                    string        // of session subjects
	claims                    int           // handed out
	lossy                     bool          // answers may get lost: what a renewal leaves out comes again
	holds                     int           // slots held by handlers that the case knows of
	jitter                    time.Duration // answers are delayed by up to so much
	twice                     bool          // each answer comes twice
	decorate                  bool          // answers have fields that nobody knows
	firstCut                  bool          // the first answer to each operation is cut in the middle
	cutOps                    map[string]bool
	openSub                   *nats.Subscription
	requests                  []*request // all of them, as they came
}

func newGateway(net *network, log *traffic) (*gateway, error) {
	g := &gateway{net: net, log: log, leaseMs: 6000, renewMs: 300, graceMs: 2000, payloadMax: 256 * 1024, counts: map[string]int{},
		prefix: "thole." + namespace + ".gateway.session.", cutOps: map[string]bool{}, random: rand.New(rand.NewSource(1))}
	var err error
	g.nc, err = nats.Connect(net.direct(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond),
		nats.ReconnectJitter(0, 0), nats.RetryOnFailedConnect(true), nats.Timeout(5*time.Second))
	if err != nil {
		return nil, err
	}
	if err = g.listen(); err != nil {
		return nil, err
	}
	_, err = g.nc.Subscribe("thole."+namespace+".gateway.client.>", g.client)
	if err != nil {
		return nil, err
	}
	return g, g.nc.Flush()
}

func (g *gateway) listen() error {
	var err error
	g.openSub, err = g.nc.Subscribe("thole."+namespace+".gateway.open.>", g.receiveOpen)
	g.nc.Flush()
	return err
}

// deaf takes the gateway away: nobody answers an open. listen undoes it.
func (g *gateway) deaf() {
	g.openSub.Unsubscribe()
	g.nc.Flush()
}

func (g *gateway) problem(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	g.log.add("!! " + text)
	g.problems = append(g.problems, text)
}

// ---- requests ----

func (g *gateway) enter(op, topic string, s *session, m *nats.Msg, into any) (*request, bool) {
	r := &request{g: g, op: op, topic: topic, sess: s, at: time.Now(), msg: m}
	name := op
	if topic != "" {
		name = topic
	}
	if s != nil {
		name = s.id + " " + op
	}
	g.log.add("-> " + name + " " + string(m.Data))
	if m.Header.Get("Content-Type") != "application/json" {
		g.problem("%s has no header Content-Type: application/json", name)
	}
	if m.Reply == "" {
		g.problem("%s has no reply subject", name)
	}
	if into != nil {
		if err := decode(m.Data, into); err != nil {
			g.problem("%s cannot be read: %v", name, err)
			return r, false
		}
	}
	counts := g.counts
	if s != nil {
		counts = s.counts
		s.requests = append(s.requests, r)
	}
	counts[op]++
	r.n = counts[op]
	g.requests = append(g.requests, r)
	return r, true
}

func (g *gateway) receiveOpen(m *nats.Msg) {
	g.mu.Lock()
	defer g.mu.Unlock()
	var open openSession
	r, ok := g.enter("open", "", nil, m, &open)
	if !ok {
		return
	}
	r.open = open
	if want := "thole." + namespace + ".gateway.open.conf"; m.Subject != want {
		g.problem("open on %s, not on %s", m.Subject, want)
	}
	if g.hook != nil && g.hook(r) {
		return
	}
	r.handle()
}

// opened makes a session for an open; the caller answers it.
func (g *gateway) opened(r *request) (*session, sessionOpened) {
	id := "s" + strconv.Itoa(len(g.sessions)+1)
	s := &session{id: id, subject: g.prefix + id + ".6f1d2c3b4a5968778695a4b3c2d1e0f" + id[1:], open: r.open, opened: time.Now(), counts: map[string]int{},
		renewed: r.at, leaseMs: g.leaseMs}
	var gone []string
	if r.open.Resume != "" {
		gone = g.resume(s, r)
	} else {
		g.checkNew(r)
	}
	g.sessions = append(g.sessions, s)
	if r.open.Inbox == "" {
		g.problem("open has no inbox")
	} else if !g.lossy && !g.net.hasInterest(r.open.Inbox) { // else it may have been given up on its way
		g.problem("the inbox %s is not subscribed when open comes", r.open.Inbox)
	}
	g.connect(s)
	return s, sessionOpened{Session: s.id, Subject: s.subject, LeaseMs: g.leaseMs, RenewMs: g.renewMs, GraceMs: g.graceMs,
		PayloadMax: g.payloadMax, DetailsMax: g.detailsMax, Gateway: "conformance", Gone: gone}
}

func (g *gateway) connect(s *session) {
	s.sub, _ = g.nc.Subscribe(s.subject+".*", func(m *nats.Msg) { g.receive(s, m) })
	g.nc.Flush()
}

// disconnect takes the gateway of a session away: no responders.
func (g *gateway) disconnect(s *session) {
	s.sub.Unsubscribe()
	g.nc.Flush()
}

func (g *gateway) receive(s *session, m *nats.Msg) {
	g.mu.Lock()
	defer g.mu.Unlock()
	op := m.Subject[strings.LastIndex(m.Subject, ".")+1:]
	r := &request{}
	var into any
	switch op {
	case "next":
		into = &r.next
	case "renew":
		into = &r.renew
	case "complete":
		into = &r.complete
	case "close":
		into = &r.close
	default:
		g.problem("there is no operation %s", op)
		return
	}
	entered, ok := g.enter(op, "", s, m, into)
	if !ok {
		return
	}
	entered.next, entered.renew, entered.complete, entered.close = r.next, r.renew, r.complete, r.close
	r = entered
	if s.next != nil && s.next.used(r.at.Add(-tolerance())) {
		g.problem("%s in %s, which %s goes on with", op, s.id, s.next.id)
	}
	crossing := op == "next" && s.crosses(r)
	if s.closed && !s.dead && !crossing && (op != "renew" || r.at.Sub(s.closedAt) > tolerance()) { // a renewal may be on its way
		g.problem("%s after close was answered", op)
	}
	if s.next == nil {
		g.check(r, crossing)
	}
	if g.hook != nil && g.hook(r) {
		return
	}
	r.handle()
}

// crosses says whether a next may have been on its way when close was sent: one, if none waited then.
func (s *session) crosses(r *request) bool {
	crosses := s.closing != nil && !s.asked && r.at.Sub(s.closing.at) < tolerance()
	s.asked = s.asked || s.closing != nil
	return crosses
}

// check looks at what holds always.
func (g *gateway) check(r *request, crossing bool) {
	s := r.sess
	switch r.op {
	case "next":
		if s.closing != nil && !crossing {
			g.problem("next after close")
		}
		if r.next.WaitMs == 0 || r.next.WaitMs > 60000 {
			g.problem("next with wait_ms %d", r.next.WaitMs)
		}
		g.checkMax(r)
	case "renew":
		s.lastRenew = r.at
		g.checkRunning(r)
	case "complete":
		if len(r.complete.Outcomes) == 0 {
			g.problem("complete without an outcome")
		}
		for _, o := range r.complete.Outcomes {
			g.checkOutcome(s, r, o)
		}
	}
}

// checkMax: the slots that are taken and max are no more than there are. The complete that frees a slot may come a little later.
func (g *gateway) checkMax(r *request) {
	var taken []*task
	for _, t := range g.all {
		if !t.finished && !t.lost && !t.maybe && t.sess != nil && !t.sess.dead && !t.given.IsZero() {
			taken = append(taken, t)
		}
	}
	busy, slots := g.holds+len(taken), int(r.sess.open.Slots)
	if int(r.next.Max)+busy <= slots {
		return
	}
	time.AfterFunc(100*time.Millisecond, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		for _, t := range taken {
			if t.finished {
				busy--
			}
		}
		if int(r.next.Max)+busy > slots {
			g.problem("next with max %d while %d of %d slots are taken", r.next.Max, busy, slots)
		}
	})
}

func (g *gateway) checkRunning(r *request) {
	listed := map[string]bool{}
	for _, running := range r.renew.Running {
		t := r.sess.find(running.Claim)
		if listed[running.Claim] {
			g.problem("renew lists %q twice", running.Claim)
		}
		listed[running.Claim] = true
		switch {
		case t == nil:
			g.problem("renew lists %q, which was never handed out", running.Claim)
		case t.lost && r.at.Sub(t.answered) > tolerance():
			g.problem("renew lists %q, which is lost", running.Claim)
		case !t.answered.IsZero() && r.at.Sub(t.answered) > tolerance():
			g.problem("renew lists %q, whose complete was answered %v before", running.Claim, r.at.Sub(t.answered).Round(time.Millisecond))
		}
		if t != nil && running.Heartbeat {
			t.beats = append(t.beats, string(running.Details))
		} else if t != nil && len(running.Details) > 0 {
			g.problem("details without heartbeat for %q", running.Claim)
		}
	}
	for _, t := range r.sess.tasks {
		if !t.inHand() || listed[t.wire.Claim] || r.at.Sub(t.given) < tolerance() {
			continue
		}
		if g.lossy && !t.finished { // it has not arrived
			t.given = time.Time{}
			g.queue = append([]*task{t}, g.queue...)
			continue
		}
		g.problem("renew leaves out %q, which is in hand", t.wire.Claim)
	}
}

func (g *gateway) checkOutcome(s *session, r *request, o outcome) {
	t := s.find(o.Claim)
	if t == nil {
		g.problem("complete of %q, which was never handed out in this session", o.Claim)
		return
	}
	if t.lost {
		g.problem("complete of %q, which is lost", o.Claim)
	}
	if len(t.outcomes) > 0 && !t.refused && fmt.Sprintf("%+v", t.outcomes[0].flat()) != fmt.Sprintf("%+v", o.flat()) {
		g.problem("complete of %q is repeated with another outcome", o.Claim)
	}
	if !t.answered.IsZero() && !g.lossy && !g.firstCut && r.at.Sub(t.answered) > tolerance() {
		g.problem("complete of %q again, %v after its answer", o.Claim, r.at.Sub(t.answered).Round(time.Millisecond))
	}
	if o.Later && t.wire.Token == "" {
		g.problem("the outcome of %q is later, and it has no token", o.Claim)
	}
	if o.Failure != nil && (len(o.Output) > 0 || o.Cancelled || o.Later) {
		g.problem("the outcome of %q is a failure and something else", o.Claim)
	}
	t.finished = true
	t.outcomes = append(t.outcomes, o)
	t.times = append(t.times, r.at)
}

func (o outcome) flat() string {
	text, _ := json.Marshal(o)
	return string(text)
}

func (s *session) find(claim string) *task {
	for _, t := range s.tasks {
		if t.wire.Claim == claim {
			return t
		}
	}
	return nil
}

// handle does what a gateway does. Called with the lock held.
func (r *request) handle() {
	g, s := r.g, r.sess
	switch r.op {
	case "open":
		_, answer := g.opened(r)
		r.answer(answer)
	case "next":
		if s.dead {
			r.refuse(statusNotFound, "there is no such session")
			return
		}
		if s.closing != nil {
			r.answer(tasks{})
			return
		}
		if s.parked != nil && s.parkedCuts == g.net.cuts && !g.lossy {
			g.problem("next while another one waits")
		}
		s.parked, s.parkedCuts = r, g.net.cuts
		if s.timer != nil {
			s.timer.Stop()
		}
		s.timer = time.AfterFunc(time.Duration(r.next.WaitMs)*time.Millisecond, func() { g.expire(r) })
		g.dispatch()
	case "renew":
		if s.dead {
			r.refuse(statusNotFound, "there is no such session")
			return
		}
		s.renewed = r.at
		r.answer(r.renewed())
		g.dispatch()
	case "complete":
		if s.dead {
			r.refuse(statusNotFound, "there is no such session")
			return
		}
		r.answer(r.completed())
		g.closeIfDone(s)
	case "close":
		if s.dead {
			r.refuse(statusNotFound, "there is no such session")
			return
		}
		g.closing(r)
	}
}

func (r *request) renewed() tasksRenewed {
	var answer tasksRenewed
	for _, running := range r.renew.Running {
		t := r.sess.find(running.Claim)
		if t == nil {
			answer.Gone = append(answer.Gone, running.Claim)
			continue
		}
		if t.gone {
			answer.Gone = append(answer.Gone, running.Claim)
			t.lose()
		} else if t.notice != nil && !t.finished {
			answer.Cancelled = append(answer.Cancelled, *t.notice)
		}
	}
	return answer
}

func (r *request) completed() tasksCompleted {
	var answer tasksCompleted
	for _, o := range r.complete.Outcomes {
		result := outcomeResult{Claim: o.Claim}
		if t := r.sess.find(o.Claim); t == nil || t.gone || t.lost {
			result.Status, result.Text = statusFenced, "the claim is gone"
		}
		if t := r.sess.find(o.Claim); t != nil && t.answered.IsZero() {
			t.answered = time.Now()
		}
		answer.Results = append(answer.Results, result)
	}
	return answer
}

// dispatch hands queued tasks to a next that waits.
func (g *gateway) dispatch() {
	for _, s := range g.sessions {
		r := s.parked
		if r == nil || s.dead || s.closing != nil || len(g.queue) == 0 {
			continue
		}
		n := min(int(max(r.next.Max, 1)), len(g.queue))
		batch := g.queue[:n]
		g.queue = append([]*task(nil), g.queue[n:]...)
		s.unpark()
		r.give(batch)
	}
}

// give answers a next with tasks.
func (r *request) give(batch []*task) {
	var answer tasks
	for _, t := range batch {
		t.sess = r.sess
		t.maybe = r.g.firstCut && !r.g.cutOps["next"]
		t.given = time.Now()
		t.delivered++
		if r.sess.find(t.wire.Claim) == nil {
			r.sess.tasks = append(r.sess.tasks, t)
		}
		answer.Tasks = append(answer.Tasks, t.wire)
	}
	r.answer(answer)
}

func (s *session) unpark() {
	s.parked = nil
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (g *gateway) expire(r *request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.sess.parked == r {
		r.sess.unpark()
		r.answer(tasks{})
	}
}

func (g *gateway) closing(r *request) {
	s := r.sess
	if s.parked != nil {
		parked := s.parked
		s.unpark()
		s.asked = true
		parked.answer(tasks{})
	}
	if s.closing == nil {
		time.AfterFunc(time.Duration(r.close.LimitMs)*time.Millisecond, func() { g.shutDown(s) })
	}
	s.closing = r
	g.closeIfDone(s)
}

func (g *gateway) closeIfDone(s *session) {
	if s.closing == nil || s.closed || len(s.held()) > 0 {
		return
	}
	s.closed, s.closedAt = true, time.Now()
	s.closing.answer(plain{})
}

func (s *session) held() []*task {
	var held []*task
	for _, t := range s.tasks {
		if t.inHand() && !t.gone {
			held = append(held, t)
		}
	}
	return held
}

func (g *gateway) shutDown(s *session) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.dead {
		return
	}
	for _, t := range s.held() {
		t.notice = &notice{Claim: t.wire.Claim, Kind: "shutdown", Reason: "the worker stops", GraceMs: g.graceMs}
		g.publish(s, *t.notice)
	}
}

// ---- answers ----

func (r *request) answer(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	g := r.g
	if g.decorate {
		data = decorated(data)
	}
	name := r.op + r.topic
	if g.firstCut && !g.cutOps[name] && r.op != "close" {
		g.cutOps[name] = true
		data = data[:len(data)/2]
		if len(data) == 0 || len(data) == 1 {
			data = []byte("{")
		}
	}
	var head plain
	json.Unmarshal(data, &head)
	r.answerRaw(data, head.Status, head.Text)
}

func (r *request) refuse(status uint32, text string) { r.answer(plain{Status: status, Text: text}) }

func (r *request) answerRaw(data []byte, status uint32, text string) {
	g := r.g
	reply := nats.NewMsg(r.msg.Reply)
	reply.Data = data
	reply.Header.Set("Content-Type", "application/json")
	if status != 0 {
		reply.Header.Set("Nats-Service-Error", ascii(text))
		reply.Header.Set("Nats-Service-Error-Code", strconv.Itoa(int(status)))
	}
	name := r.op
	if r.sess != nil {
		name = r.sess.id + " " + r.op
	}
	send := func() {
		g.log.add("<- " + name + " " + string(data))
		g.nc.PublishMsg(reply)
		if g.twice {
			g.nc.PublishMsg(reply)
		}
	}
	if g.jitter > 0 {
		time.AfterFunc(time.Duration(g.random.Int63n(int64(g.jitter))), send)
	} else {
		send()
	}
}

// ascii is a text as a header may have it: some NATS clients take no other ones.
func ascii(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

func decorated(data []byte) []byte {
	var loose map[string]any
	if json.Unmarshal(data, &loose) != nil {
		return data
	}
	decorateMap(loose)
	out, _ := json.Marshal(loose)
	return out
}

func decorateMap(value any) {
	switch v := value.(type) {
	case map[string]any:
		for _, item := range v {
			decorateMap(item)
		}
		v["aFieldOfTheFuture"] = map[string]any{"x": []any{1, "two", nil}}
		v["another_one"] = "ünï"
	case []any:
		for _, item := range v {
			decorateMap(item)
		}
	}
}

// publish sends a notice to the session's inbox.
func (g *gateway) publish(s *session, n notice) {
	data, _ := json.Marshal(n)
	if g.decorate {
		data = decorated(data)
	}
	g.publishRaw(s, data)
}

func (g *gateway) publishRaw(s *session, data []byte) {
	m := nats.NewMsg(s.open.Inbox)
	m.Data = data
	m.Header.Set("Content-Type", "application/json")
	g.log.add("<- " + s.id + " notice " + string(data))
	g.nc.PublishMsg(m)
}

func (g *gateway) client(m *nats.Msg) {
	g.mu.Lock()
	defer g.mu.Unlock()
	topic := strings.TrimPrefix(m.Subject, "thole."+namespace+".gateway.client.")
	r, _ := g.enter("client", topic, nil, m, nil)
	for name, max := range map[string]int{"Thole-Actor": 200, "Thole-Client": 64} {
		if value := m.Header.Get(name); value == "" || len(value) > max || strings.Trim(value, printable) != "" {
			g.problem("%s has the header %s: %q", topic, name, value)
		}
	}
	if g.clients == nil {
		return
	}
	if answer := g.clients(r); answer != nil {
		r.answer(answer)
	}
}
