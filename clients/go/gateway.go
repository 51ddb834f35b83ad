package thole

// The messages of proto/gateway.proto in their JSON mapping: what a message does not have is left out, or zero.

// ask is any request.
type ask struct {
	Worker     string        `json:"worker,omitempty"` // OpenSession
	Slots      int           `json:"slots,omitempty"`
	Activities []string      `json:"activities,omitempty"`
	Inbox      string        `json:"inbox,omitempty"`
	Host       string        `json:"host,omitempty"`
	Resume     string        `json:"resume,omitempty"`
	Claims     []string      `json:"claims,omitempty"`
	Max        int           `json:"max,omitempty"` // NextTasks; WaitMs: WaitInstance, too
	WaitMs     int64         `json:"waitMs,omitempty"`
	Running    []runningTask `json:"running,omitempty"`  // RenewTasks
	Outcomes   []outcome     `json:"outcomes,omitempty"` // CompleteTasks
	LimitMs    int64         `json:"limitMs,omitempty"`  // CloseSession
	Instance   string        `json:"instance,omitempty"` // a client's
	Input      []byte        `json:"input,omitempty"`
	Data       []byte        `json:"data,omitempty"`
	Reason     string        `json:"reason,omitempty"`
	RequestID  string        `json:"requestId,omitempty"`
	Version    uint32        `json:"version,omitempty"`
}

// answer is any answer.
type answer struct {
	Status     Status          `json:"status"`
	Text       string          `json:"text"`
	Session    string          `json:"session"` // SessionOpened
	Subject    string          `json:"subject"`
	LeaseMs    uint32          `json:"leaseMs"`
	RenewMs    uint32          `json:"renewMs"`
	GraceMs    uint32          `json:"graceMs"`
	PayloadMax uint64          `json:"payloadMax,string"`
	Gateway    string          `json:"gateway"`
	Tasks      []*Task         `json:"tasks"`     // Tasks
	Cancelled  []notice        `json:"cancelled"` // TasksRenewed
	Gone       []string        `json:"gone"`      // of SessionOpened, too
	Results    []outcomeResult `json:"results"`   // TasksCompleted
	Instance   string          `json:"instance"`  // to a client
	State      string          `json:"state"`
	Output     []byte          `json:"output"`
	ErrorType  string          `json:"errorType"`
}

type runningTask struct {
	Claim     string `json:"claim"`
	Details   []byte `json:"details,omitempty"`
	Heartbeat bool   `json:"heartbeat,omitempty"`
}

type notice struct {
	Claim   string `json:"claim"`
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
	GraceMs uint32 `json:"graceMs"`
}

type outcome struct {
	Claim     string       `json:"claim"`
	Output    []byte       `json:"output,omitempty"`
	Failure   *taskFailure `json:"failure,omitempty"`
	Cancelled bool         `json:"cancelled,omitempty"`
}

type taskFailure struct {
	Text  string `json:"text"`
	Type  string `json:"type,omitempty"`
	Final bool   `json:"final,omitempty"`
}

type outcomeResult struct {
	Claim  string `json:"claim"`
	Status Status `json:"status"`
	Text   string `json:"text"`
}
