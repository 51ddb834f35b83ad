package thole

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
)

// The golden messages of proto/golden, read and written as this client does: docs/wire.md, "Golden bytes".

type goldenLine struct {
	Name, Type string
	JSON       json.RawMessage
}

// goldenTypes has what a message is read into, and written from.
var goldenTypes = map[string]any{
	"OpenSession": ask{}, "NextTasks": ask{}, "RenewTasks": ask{}, "RunningTask": outcome{}, "CompleteTasks": ask{}, "Outcome": outcome{},
	"TaskFailure": Failure{}, "CloseSession": ask{}, "StartInstance": ask{}, "SignalInstance": ask{}, "EndInstance": ask{},
	"QueryInstance": ask{}, "WaitInstance": ask{}, "Task": Task{}, "Notice": answer{}, "OutcomeResult": answer{},
	"SessionOpened": answer{}, "Tasks": answer{}, "TasksRenewed": answer{}, "TasksCompleted": answer{}, "SessionClosed": answer{},
	"InstanceStarted": answer{}, "Accepted": answer{}, "QueryResult": answer{}, "InstanceOutcome": answer{},
	"DescribeInstance": ask{}, "InstanceDescription": answer{}, "InstanceInfo": Instance{}, "Hindrance": Hindrance{}, "ListInstances": ask{},
	"InstanceList": answer{}, "CompleteActivity": ask{},
}

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
		message := reflect.New(reflect.TypeOf(kind)).Interface()
		if err := json.Unmarshal(line.JSON, message); err != nil {
			t.Errorf("%s: %v", line.Name, err)
		}
		if told, ok := message.(*answer); ok {
			checkAnswer(t, line, told)
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

// checkAnswer reads an answer as call does.
func checkAnswer(t *testing.T, line goldenLine, want *answer) {
	told := read(line.JSON)
	err := told.err()
	var refusal *Error
	if !reflect.DeepEqual(told, want) || StatusOf(err) != want.Status || errors.As(err, &refusal) && refusal.Text != want.Text {
		t.Errorf("%s: %v", line.Name, err)
	}
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
