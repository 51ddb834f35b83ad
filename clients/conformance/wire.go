package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The messages of proto/gateway.proto in the JSON mapping. Requests are read strictly, answers written as a gateway does.

type openSession struct {
	Worker     string   `json:"worker"`
	Slots      uint32   `json:"slots"`
	Activities []string `json:"activities"`
	Inbox      string   `json:"inbox"`
	Host       string   `json:"host"`
	Resume     string   `json:"resume"`
	Claims     []string `json:"claims"`
}

type sessionOpened struct {
	Status     uint32   `json:"status,omitempty"`
	Text       string   `json:"text,omitempty"`
	Session    string   `json:"session,omitempty"`
	Subject    string   `json:"subject,omitempty"`
	LeaseMs    uint32   `json:"leaseMs,omitempty"`
	RenewMs    uint32   `json:"renewMs,omitempty"`
	GraceMs    uint32   `json:"graceMs,omitempty"`
	PayloadMax uint64   `json:"payloadMax,string,omitempty"`
	DetailsMax uint32   `json:"detailsMax,omitempty"`
	Gateway    string   `json:"gateway,omitempty"`
	Gone       []string `json:"gone,omitempty"`
}

type nextTasks struct {
	Max    uint32 `json:"max"`
	WaitMs uint32 `json:"waitMs"`
}

type tasks struct {
	Status uint32     `json:"status,omitempty"`
	Text   string     `json:"text,omitempty"`
	Tasks  []taskWire `json:"tasks,omitempty"`
}

type taskWire struct {
	Claim         string `json:"claim,omitempty"`
	Activity      string `json:"activity,omitempty"`
	Instance      string `json:"instance,omitempty"`
	Execution     uint64 `json:"execution,string,omitempty"`
	ActivityID    uint64 `json:"activityId,string,omitempty"`
	TryNumber     uint32 `json:"tryNumber,omitempty"`
	Attempt       uint32 `json:"attempt,omitempty"`
	Input         []byte `json:"input,omitempty"`
	Key           string `json:"key,omitempty"`
	Orchestration string `json:"orchestration,omitempty"`
	Version       uint32 `json:"version,omitempty"`
	Details       []byte `json:"details,omitempty"`
	TimeoutMs     uint64 `json:"timeoutMs,string,omitempty"`
	Queue         string `json:"queue,omitempty"`
	Traceparent   string `json:"traceparent,omitempty"`
	Tracestate    string `json:"tracestate,omitempty"`
	Token         string `json:"token,omitempty"`
}

type renewTasks struct {
	Running []runningTask `json:"running"`
}

type runningTask struct {
	Claim     string `json:"claim"`
	Details   []byte `json:"details"`
	Heartbeat bool   `json:"heartbeat"`
}

type tasksRenewed struct {
	Status    uint32   `json:"status,omitempty"`
	Text      string   `json:"text,omitempty"`
	Cancelled []notice `json:"cancelled,omitempty"`
	Gone      []string `json:"gone,omitempty"`
}

type notice struct {
	Claim   string `json:"claim,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Reason  string `json:"reason,omitempty"`
	GraceMs uint32 `json:"graceMs,omitempty"`
}

type completeTasks struct {
	Outcomes []outcome `json:"outcomes"`
}

type outcome struct {
	Claim     string       `json:"claim"`
	Output    []byte       `json:"output"`
	Failure   *taskFailure `json:"failure"`
	Cancelled bool         `json:"cancelled"`
	Details   []byte       `json:"details"`
	Heartbeat bool         `json:"heartbeat"`
	Later     bool         `json:"later"`
}

type taskFailure struct {
	Text  string `json:"text"`
	Type  string `json:"type"`
	Final bool   `json:"final"`
}

type tasksCompleted struct {
	Status  uint32          `json:"status,omitempty"`
	Text    string          `json:"text,omitempty"`
	Results []outcomeResult `json:"results,omitempty"`
}

type outcomeResult struct {
	Claim  string `json:"claim,omitempty"`
	Status uint32 `json:"status,omitempty"`
	Text   string `json:"text,omitempty"`
}

type closeSession struct {
	LimitMs uint32 `json:"limitMs"`
}

type startInstance struct {
	Instance     string `json:"instance"`
	Input        []byte `json:"input"`
	RequestID    string `json:"requestId"`
	Version      uint32 `json:"version"`
	EventData    []byte `json:"eventData"`
	RequireKnown bool   `json:"requireKnown"`
}

type instanceStarted struct {
	Status   uint32 `json:"status,omitempty"`
	Text     string `json:"text,omitempty"`
	Instance string `json:"instance,omitempty"`
}

type signalInstance struct {
	Instance  string `json:"instance"`
	Data      []byte `json:"data"`
	RequestID string `json:"requestId"`
}

type endInstance struct {
	Instance  string `json:"instance"`
	Reason    string `json:"reason"`
	RequestID string `json:"requestId"`
}

type queryInstance struct {
	Instance string `json:"instance"`
	Input    []byte `json:"input"`
}

type queryResult struct {
	Status uint32 `json:"status,omitempty"`
	Text   string `json:"text,omitempty"`
	Output []byte `json:"output,omitempty"`
}

type waitInstance struct {
	Instance string `json:"instance"`
	WaitMs   uint32 `json:"waitMs"`
	Explain  bool   `json:"explain"`
}

type instanceOutcome struct {
	Status    uint32 `json:"status,omitempty"`
	Text      string `json:"text,omitempty"`
	State     string `json:"state,omitempty"`
	Output    []byte `json:"output,omitempty"`
	ErrorType string `json:"errorType,omitempty"`
	Reason    string `json:"reason,omitempty"`
	NextStep  string `json:"nextStep,omitempty"`
}

type describeInstance struct {
	Instance string `json:"instance"`
}

type instanceDescription struct {
	Status     uint32        `json:"status,omitempty"`
	Text       string        `json:"text,omitempty"`
	Info       *instanceInfo `json:"info,omitempty"`
	Hindrances []hindrance   `json:"hindrances,omitempty"`
}

type instanceInfo struct {
	Instance      string `json:"instance,omitempty"`
	Orchestration string `json:"orchestration,omitempty"`
	Version       uint32 `json:"version,omitempty"`
	Execution     uint64 `json:"execution,string,omitempty"`
	State         string `json:"state,omitempty"`
	Reason        string `json:"reason,omitempty"`
	Detail        string `json:"detail,omitempty"`
	CustomStatus  string `json:"customStatus,omitempty"`
	CreatedMs     uint64 `json:"createdMs,string,omitempty"`
}

type hindrance struct {
	Kind     string `json:"kind,omitempty"`
	Text     string `json:"text,omitempty"`
	NextStep string `json:"nextStep,omitempty"`
}

type listInstances struct {
	States          []string    `json:"states"`
	Orchestration   string      `json:"orchestration"`
	IDPrefix        string      `json:"idPrefix"`
	Parent          string      `json:"parent"`
	CustomStatus    string      `json:"customStatus"`
	CreatedAfterMs  json.Number `json:"createdAfterMs"`
	CreatedBeforeMs json.Number `json:"createdBeforeMs"`
	Limit           uint32      `json:"limit"`
	BehindInstance  string      `json:"behindInstance"`
	BehindCreatedMs json.Number `json:"behindCreatedMs"` // 64 bits: a number, or a string of it
}

type instanceList struct {
	Status    uint32         `json:"status,omitempty"`
	Text      string         `json:"text,omitempty"`
	Instances []instanceInfo `json:"instances,omitempty"`
}

type completeActivity struct {
	Token   string       `json:"token"`
	Output  []byte       `json:"output"`
	Failure *taskFailure `json:"failure"`
}

// plain is an answer with a status and a text alone: of a close, of what is accepted, and any that is refused.
type plain struct {
	Status uint32 `json:"status,omitempty"`
	Text   string `json:"text,omitempty"`
}

type accepted struct {
	Status uint32 `json:"status,omitempty"`
	Text   string `json:"text,omitempty"`
	Note   string `json:"note,omitempty"`
}

// Statuses of include/thole/types.h.
const (
	statusNomem       = 1
	statusInvalid     = 2
	statusLimit       = 3
	statusApp         = 7
	statusCancelled   = 6
	statusConflict    = 8
	statusUnavailable = 9
	statusNotFound    = 10
	statusTimeout     = 11
	statusDenied      = 13
	statusFenced      = 14
)

func camel(name string) string {
	parts := strings.Split(name, "_")
	for i := 1; i < len(parts); i++ {
		if parts[i] != "" {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
	}
	return strings.Join(parts, "")
}

func camelKeys(value any) any {
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[camel(key)] = camelKeys(item)
		}
		return out
	case []any:
		for i := range v {
			v[i] = camelKeys(v[i])
		}
	}
	return value
}

// decode reads a request: names as in the file or in lowerCamelCase, no unknown ones, bytes in padded standard base64.
func decode(data []byte, into any) error {
	var loose any
	if err := json.Unmarshal(data, &loose); err != nil {
		return fmt.Errorf("no JSON: %w", err)
	}
	if _, ok := loose.(map[string]any); !ok {
		return fmt.Errorf("not a JSON object")
	}
	text, err := json.Marshal(camelKeys(loose))
	if err != nil {
		return err
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	return strict.Decode(into)
}
