package thole

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The golden messages of proto/golden, read and written as this client does: docs/wire.md, "Golden bytes".

type goldenLine struct {
	Name, Type string
	JSON       json.RawMessage
}

// goldenTypes has what a message is read into, and written from; nil: of the answer only status and text.
var goldenTypes = map[string]any{
	"OpenSession": openSession{}, "NextTasks": nextTasks{}, "RenewTasks": renewTasks{}, "RunningTask": runningTask{},
	"CompleteTasks": completeTasks{}, "Outcome": outcome{}, "TaskFailure": taskFailure{}, "CloseSession": closeSession{},
	"StartInstance": startInstance{}, "SignalInstance": signalInstance{}, "EndInstance": endInstance{}, "QueryInstance": queryInstance{},
	"WaitInstance": waitInstance{}, "Task": taskMessage{}, "Notice": notice{}, "OutcomeResult": outcomeResult{},
	"SessionOpened": sessionOpened{}, "Tasks": tasksAnswer{}, "TasksRenewed": tasksRenewed{}, "TasksCompleted": tasksCompleted{},
	"SessionClosed": nil, "InstanceStarted": instanceStarted{}, "Accepted": nil, "QueryResult": queryResult{}, "InstanceOutcome": instanceOutcome{},
}

var goldenAnswers = "SessionOpened Tasks TasksRenewed TasksCompleted SessionClosed InstanceStarted Accepted QueryResult InstanceOutcome"

// What this client does not look at, or does not send.
var goldenLeftOut = map[string]string{"StartInstance": "traceparent tracestate"} // they are headers

func goldenLines(t *testing.T) (lines []goldenLine) {
	data, err := os.ReadFile("../../proto/golden/gateway.json")
	if err == nil {
		err = json.Unmarshal(data, &lines)
	}
	if err != nil || len(lines) == 0 {
		t.Fatalf("%d golden messages: %v", len(lines), err)
	}
	return lines
}

func TestGoldenMessages(t *testing.T) {
	seen := map[string]bool{}
	for _, line := range goldenLines(t) {
		name := strings.TrimPrefix(line.Type, "thole.v1.")
		kind, known := goldenTypes[name]
		if !known {
			t.Errorf("%s is a message that this test does not know", name)
			continue
		}
		seen[name] = true
		want := plain(t, line.JSON, goldenLeftOut[name]).(map[string]any)
		message := any(&struct{}{})
		if kind != nil {
			message = reflect.New(reflect.TypeOf(kind)).Interface()
		}
		if !strings.Contains(goldenAnswers, name) {
			if err := json.Unmarshal(line.JSON, message); err != nil {
				t.Errorf("%s: %v", line.Name, err)
			}
		} else {
			checkAnswer(t, line, want, message)
		}
		written, err := json.Marshal(message)
		if got := plain(t, written, ""); err != nil || !reflect.DeepEqual(got, any(want)) {
			t.Errorf("%s: written as %s, %v", line.Name, written, err)
		}
	}
	if len(seen) != len(goldenTypes) {
		t.Errorf("golden messages of %d types; this client knows %d", len(seen), len(goldenTypes))
	}
}

// checkAnswer reads an answer as call does, and takes status and text out of what is wanted.
func checkAnswer(t *testing.T, line goldenLine, want map[string]any, message any) {
	var head struct {
		Status Status
		Text   string
	}
	_ = json.Unmarshal(line.JSON, &head)
	err := read(line.JSON, message)
	var refusal *Error
	if errors.Is(err, errBroken) || StatusOf(err) != head.Status || errors.As(err, &refusal) && refusal.Text != head.Text {
		t.Errorf("%s: %v", line.Name, err)
	}
	delete(want, "status")
	delete(want, "text")
}

// plain is a JSON text without the members that have their defaults.
func plain(t *testing.T, data []byte, without string) any {
	var value any
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%s: %v", data, err)
	}
	return trimmed(value, without)
}

func trimmed(value any, without string) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = trimmed(v[i], without)
		}
	case map[string]any:
		for key, member := range v {
			v[key] = trimmed(member, without)
			list, isList := member.([]any)
			if member == nil || member == "" || member == "0" || member == false || member == json.Number("0") || isList && len(list) == 0 ||
				strings.Contains(without, key) {
				delete(v, key)
			}
		}
	}
	return value
}

func TestGoldenTasks(t *testing.T) {
	for _, line := range goldenLines(t) {
		var m taskMessage
		if line.Type != "thole.v1.Task" || json.Unmarshal(line.JSON, &m) != nil {
			continue
		}
		task := newTask(&m)
		if task.Execution != m.Execution || task.ActivityID != m.ActivityID || task.Try != m.TryNumber || string(task.Input) != string(m.Input) {
			t.Errorf("%s: %+v", line.Name, task)
		}
		if want := m.TimeoutMs; want > 0 && task.Timeout < time.Duration(min(want, 1<<32))*time.Millisecond {
			t.Errorf("%s: a timeout of %v", line.Name, task.Timeout)
		}
	}
}
