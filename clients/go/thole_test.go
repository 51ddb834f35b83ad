package thole

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAnswersAreRead(t *testing.T) {
	for _, row := range []struct {
		data   string
		status Status
		broken bool
	}{
		{`{}`, StatusOK, false},
		{`{"instance":"i","future":[1]}`, StatusOK, false},
		{`{"status":10,"text":"none"}`, StatusNotFound, false},
		{``, 0, true},
		{`null`, 0, true},
		{`[]`, 0, true},
		{`7`, 0, true},
		{`{"status":"no"}`, 0, true},
		{`{"instance":7}`, 0, true},
		{`{"instance":"i"`, 0, true},
	} {
		a := read([]byte(row.data))
		if a.unanswered != row.broken || !row.broken && StatusOf(a.err()) != row.status {
			t.Errorf("%q: %v", row.data, a.err())
		}
	}
}

func TestOutcomes(t *testing.T) {
	for _, row := range []struct {
		name      string
		output    string
		err       error
		cancelled bool
		want      string
	}{
		{"output", "abc", nil, false, "output abc"},
		{"output after a notice", "abc", nil, true, "output abc"},
		{"too large", strings.Repeat("x", 9), nil, false, "final too_large the output has 9 bytes, the gateway takes 8"},
		{"an error", "", errors.New("oh"), false, "failure  oh"},
		{"an error without a text", "", errors.New(""), false, "failure  failed"},
		{"an error after a notice", "", errors.New("oh"), true, "cancelled"},
		{"the context's", "", context.Canceled, true, "cancelled"},
		{"a failure", "", &Failure{Text: "no", Type: "a b/ü", Final: true}, false, "final a_b__ no"},
		{"a failure after a notice", "", &Failure{Text: "no"}, true, "failure  no"},
		{"a failure inside", "", errors.Join(errors.New("x"), &Failure{Text: "no", Type: "t"}), false, "failure t no"},
		{"no UTF-8", "", errors.New("a\xffb"), false, "failure  a\uFFFDb"},
	} {
		h := &Task{held: &held{worker: &Worker{opened: answer{PayloadMax: 8}}}}
		h.ctx, h.cancel = context.WithCancelCause(context.Background())
		if row.cancelled {
			h.cancel(&Cancelled{Kind: "requested"})
		}
		if got := told(h.outcome([]byte(row.output), row.err)); got != row.want {
			t.Errorf("%s: %s, not %s", row.name, got, row.want)
		}
	}
}

func told(o outcome) string {
	switch {
	case o.Cancelled:
		return "cancelled"
	case o.Failure != nil && o.Failure.Final:
		return "final " + o.Failure.Type + " " + o.Failure.Text
	case o.Failure != nil:
		return "failure " + o.Failure.Type + " " + o.Failure.Text
	}
	return "output " + string(o.Output)
}

func TestPausesDouble(t *testing.T) {
	var pause backoff
	for _, want := range []time.Duration{200, 400, 800, 1600, 3200, 5000, 5000} {
		if got := pause.next(); got != want*time.Millisecond {
			t.Errorf("%v, not %d ms", got, want)
		}
	}
}
