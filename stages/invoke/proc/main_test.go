package proc

import (
	"os"
	"strings"
	"testing"
)

// TestMain lets the test binary be the supervisor, a host and hostile programs.
func TestMain(m *testing.M) {
	if code, ok := Main(os.Args[1:]); ok {
		os.Exit(code)
	}
	if mode := os.Getenv("PROC_TEST_MODE"); mode != "" {
		os.Exit(modes[mode]())
	}
	os.Exit(m.Run())
}

func TestEnvIsAnAllowList(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	t.Setenv("LC_TEST", "y")
	env := strings.Join(Env(map[string]string{"MINE": "z", "PATH": "/only"}), "\n")
	if strings.Contains(env, "AWS_") || !strings.Contains(env, "LC_TEST=y") || !strings.Contains(env, "MINE=z") || strings.Count(env, "PATH=/only") != 1 {
		t.Fatal(env)
	}
}

func TestOtherArgumentsAreNoSupervisor(t *testing.T) {
	for _, args := range [][]string{nil, {"run"}, {"shim"}, {"run", shimArg}} {
		if _, ok := Main(args); ok {
			t.Errorf("%q", args)
		}
	}
}
