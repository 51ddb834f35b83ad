package thole

// The messages of proto/gateway.proto in their JSON mapping.

type openSession struct {
	Worker     string   `json:"worker"`
	Slots      int      `json:"slots"`
	Activities []string `json:"activities"`
	Inbox      string   `json:"inbox"`
}

type sessionOpened struct {
	Session    string `json:"session"`
	Subject    string `json:"subject"`
	LeaseMs    uint32 `json:"leaseMs"`
	RenewMs    uint32 `json:"renewMs"`
	GraceMs    uint32 `json:"graceMs"`
	PayloadMax uint64 `json:"payloadMax,string"`
	Gateway    string `json:"gateway"`
}

type nextTasks struct {
	Max    int   `json:"max"`
	WaitMs int64 `json:"waitMs"`
}

type tasksAnswer struct {
	Tasks []taskMessage `json:"tasks"`
}

type taskMessage struct {
	Claim         string `json:"claim"`
	Activity      string `json:"activity"`
	Instance      string `json:"instance"`
	Execution     uint64 `json:"execution,string"`
	ActivityID    uint64 `json:"activityId,string"`
	TryNumber     uint32 `json:"tryNumber"`
	Attempt       uint32 `json:"attempt"`
	Input         []byte `json:"input"`
	Key           string `json:"key"`
	Orchestration string `json:"orchestration"`
	Version       uint32 `json:"version"`
	Details       []byte `json:"details"`
	TimeoutMs     uint64 `json:"timeoutMs,string"`
	Queue         string `json:"queue"`
	Traceparent   string `json:"traceparent"`
	Tracestate    string `json:"tracestate"`
}

type renewTasks struct {
	Running []runningTask `json:"running,omitempty"`
}

type runningTask struct {
	Claim     string `json:"claim"`
	Details   []byte `json:"details,omitempty"`
	Heartbeat bool   `json:"heartbeat,omitempty"`
}

type tasksRenewed struct {
	Cancelled []notice `json:"cancelled"`
	Gone      []string `json:"gone"`
}

type notice struct {
	Claim   string `json:"claim"`
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
	GraceMs uint32 `json:"graceMs"`
}

type completeTasks struct {
	Outcomes []outcome `json:"outcomes"`
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

type tasksCompleted struct {
	Results []outcomeResult `json:"results"`
}

type outcomeResult struct {
	Claim  string `json:"claim"`
	Status Status `json:"status"`
	Text   string `json:"text"`
}

type closeSession struct {
	LimitMs int64 `json:"limitMs"`
}

type startInstance struct {
	Instance  string `json:"instance,omitempty"`
	Input     []byte `json:"input,omitempty"`
	RequestID string `json:"requestId"`
	Version   uint32 `json:"version,omitempty"`
}

type instanceStarted struct {
	Instance string `json:"instance"`
}

type signalInstance struct {
	Instance  string `json:"instance"`
	Data      []byte `json:"data,omitempty"`
	RequestID string `json:"requestId"`
}

type endInstance struct {
	Instance  string `json:"instance"`
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"requestId"`
}

type queryInstance struct {
	Instance string `json:"instance"`
	Input    []byte `json:"input,omitempty"`
}

type queryResult struct {
	Output []byte `json:"output"`
}

type waitInstance struct {
	Instance string `json:"instance"`
	WaitMs   int64  `json:"waitMs"`
}

type instanceOutcome struct {
	State     string `json:"state"`
	Output    []byte `json:"output"`
	ErrorType string `json:"errorType"`
}
