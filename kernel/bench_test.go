package kernel_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"witan/kernel"
)

// large is a council of 16 members whose plan has 64 items, agreed on in the
// last of 10 rounds and accepted in the last of 10 syntheses.
func large(b *testing.B) *sim {
	var members []kernel.AgentID
	for i := range 16 {
		members = append(members, kernel.AgentID(fmt.Sprintf("m%02d", i)))
	}
	text := strings.Repeat("what is to be done ", 20)
	plan := func(finalizer kernel.AgentID) obj {
		var items []obj
		for i := range 64 {
			it := obj{"id": fmt.Sprintf("W%02d", i), "owner": members[i%16], "role": "worker", "objective": text, "expected_output": text, "inputs": []string{}, "depends_on": []string{}}
			if i >= 16 {
				it["depends_on"] = []string{fmt.Sprintf("W%02d", i-16)}
			}
			items = append(items, it)
		}
		items = append(items[:63], obj{"id": "Z", "owner": finalizer, "role": "integrator", "objective": text, "expected_output": text, "inputs": []string{}, "depends_on": []string{}})
		return obj{"items": items, "finalizer": finalizer}
	}
	m := council(b, func(at *kernel.Attempt, r obj) obj {
		switch {
		case only("challenge", 0, at):
			f := members[0]
			if at.Body.Round < 10 && at.Body.Agent == "m03" {
				f = members[1+at.Body.Round]
			}
			r["plan"] = plan(f)
		case only("verification", 0, at) && at.Body.Round < 10 && at.Body.Agent == "m05":
			r["verdict"], r["findings"] = "contradict", []obj{{"severity": "high", "title": fmt.Sprint("not yet ", at.Body.Round), "detail": text}}
		case only("synthesis", 0, at):
			r["resolved"] = []string{fmt.Sprintf("I%d", at.Body.Round-1)}
		}
		return r
	}, members...)
	return m.with(func(c *kernel.CreatedBody) { c.MaxRounds = 10 })
}

// BenchmarkLongCouncil compares the time of a decision at the end of a long run
// with that at its start: it must not grow with what was decided before.
func BenchmarkLongCouncil(b *testing.B) {
	for b.Loop() {
		m := large(b)
		var took []time.Duration
		m.took = func(d time.Duration) { took = append(took, d) }
		m.drive()
		if m.s.Finished.Status != kernel.RunCompleted {
			b.Fatalf("%s %s after %s", m.s.Finished.Status, m.s.Finished.Reason, m.phases())
		}
		n := len(took) / 10
		start, end := mean(took[:n]), mean(took[len(took)-n:])
		b.ReportMetric(float64(end)/float64(start), "end/start")
		b.ReportMetric(float64(start.Microseconds()), "start-µs")
		b.ReportMetric(float64(end.Microseconds()), "end-µs")
		b.ReportMetric(float64(len(took)), "decisions")
	}
}

func mean(ds []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range ds {
		sum += d
	}
	return sum / time.Duration(len(ds))
}
