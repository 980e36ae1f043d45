package arch

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDependencyDirection(t *testing.T) {
	files, err := loadModule("../../..")
	if err != nil {
		t.Fatal(err)
	}
	layers := map[string]bool{}
	for _, f := range files {
		layer, _, _ := strings.Cut(f.pkg, "/")
		layers[layer] = true
	}
	if !layers["kernel"] || !layers["cmd"] {
		t.Fatalf("this is not the module: found %v", layers)
	}
	for _, line := range check(files) {
		t.Error(line)
	}
}

// source is a Go file of a module that was never written.
type source struct{ name, text string }

func TestCheck(t *testing.T) {
	const clean = `package p
		import ("context"; "witan/kernel")
		var _ context.Context; var _ kernel.RunID`
	tests := []struct {
		name  string
		files []source
		want  []string // part of each line, in order
	}{
		{"what is allowed", []source{
			{"kernel/a.go", `package kernel; import "encoding/json"; var _ json.Number`},
			{"kernel/kerneltest/a.go", `package kerneltest; import ("testing"; "witan/kernel"); var _ testing.TB; var _ kernel.RunID`},
			{"bus/a.go", `package bus; import (_ "witan/kernel"; _ "github.com/ThreeDotsLabs/watermill/message")`},
			{"bus/a_test.go", `package bus_test; import (_ "github.com/ThreeDotsLabs/watermill/pubsub/tests"; _ "os/exec")`},
			{"stores/packs/a.go", `package packs; import (_ "witan/stores/internal/db"; _ "github.com/dgraph-io/badger/v4")`},
			{"stages/invoke/acp/a.go", `package acp; import (_ "witan/kernel"; _ "witan/stages/invoke/proc")`},
			{"stages/invoke/proc/a.go", `package proc; import (_ "os/exec"; _ "github.com/landlock-lsm/go-landlock/landlock")`},
			{"ui/a.go", `package ui; import (_ "gioui.org/app"; _ "witan/kernel")`},
			{"cmd/witan/a.go", `package main; import (_ "witan/ui"; _ "witan/bus"; _ "witan/stores/packs"; _ "witan/stages/invoke/acp"; _ "witan/cmd/internal/host")`},
			{"cmd/internal/host/a.go", clean},
			{"cmd/fakeagent/a.go", `package main; import "os/exec"; var _ exec.Cmd`},
			{"testscripts/a_test.go", `package testscripts; import _ "os/exec"`},
		}, nil},
		{"the kernel and another module", []source{{"kernel/a.go", `package kernel; import _ "golang.org/x/sync/errgroup"`}},
			[]string{"kernel/a.go: imports golang.org/x/sync/errgroup: the kernel uses the standard library only"}},
		{"the kernel and a layer", []source{{"kernel/a_test.go", `package kernel_test; import _ "witan/bus"`}},
			[]string{"kernel may not import bus"}},
		{"layers and each other", []source{
			{"bus/a.go", `package bus; import _ "witan/stores"`},
			{"stages/freeze/a.go", `package freeze; import (_ "witan/bus"; _ "witan/cmd/internal/host")`},
			{"stores/a_test.go", `package stores; import _ "witan/stages/freeze"`},
			{"ui/a_linux.go", `package ui; import _ "witan/stores"`},
		}, []string{"bus may not import stores", "stages may not import bus", "stages may not import cmd", "stores may not import stages", "ui may not import stores"}},
		{"a stage and another", []source{
			{"stages/verify/a.go", `package verify; import _ "witan/stages/invoke/proc"`},
			{"stages/invoke/acp/a_test.go", `package acp; import _ "witan/stages/receipt"`},
			{"stages/invoke/text/a.go", `package text; import _ "witan/stages"`},
		}, []string{"stages/invoke/acp/a_test.go: imports witan/stages/receipt: a stage never", "stages/invoke/text/a.go: imports witan/stages: a stage never", "stages/verify/a.go: imports witan/stages/invoke/proc: a stage never"}},
		{"modules away from home", []source{
			{"bus/a.go", `package bus; import _ "github.com/dgraph-io/badger/v4"`},
			{"cmd/witan/a.go", `package main; import (_ "github.com/ThreeDotsLabs/watermill-nats/v2/pkg/nats"; _ "gioui.org/layout")`},
			{"stages/invoke/acp/a.go", `package acp; import _ "github.com/landlock-lsm/go-landlock/landlock"`},
			{"stores/a_test.go", `package stores; import _ "github.com/nats-io/nats.go"`},
		}, []string{"only stores may", "only ui may", "only bus may", "only stages/invoke/proc may", "only bus may"}},
		{"process control", []source{
			{"bus/a.go", `package bus; import sys "syscall"; var _ = sys.Kill`},
			{"cmd/internal/host/a.go", `package host; import "os"; var _ = os.StartProcess`},
			{"cmd/witan/a.go", `package main; import _ "witan/cmd/internal/host"`},
			{"stages/freeze/a_windows.go", `package freeze; import ("golang.org/x/sys/windows"; "os"); var _ = windows.TerminateProcess; var _ = os.Getpid`},
			{"stages/verify/a.go", `package verify; import . "os/exec"`},
		}, []string{"bus/a.go: uses syscall.Kill", "cmd/internal/host/a.go: uses os.StartProcess", "stages/freeze/a_windows.go: uses golang.org/x/sys/windows.TerminateProcess", "stages/verify/a.go: uses os/exec"}},
		{"another top level", []source{{"internal/a.go", `package a`}, {"a.go", `package witan`}},
			[]string{`a.go: no Go package belongs at ""`, `internal/a.go: no Go package belongs at "internal"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var files []file
			for _, s := range tt.files {
				f, err := parseFile(s.name, []byte(s.text))
				if err != nil {
					t.Fatal(err)
				}
				files = append(files, f)
			}
			got := check(files)
			if len(got) != len(tt.want) {
				t.Fatalf("got %d lines: %q", len(got), got)
			}
			for i := range got {
				if !strings.Contains(got[i], tt.want[i]) {
					t.Errorf("line %d is %q, want %q in it", i, got[i], tt.want[i])
				}
			}
		})
	}
}

func TestLoadModule(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"kernel/a.go":               "package kernel",
		"kernel/a_windows.go":       "//go:build windows\n\npackage kernel\n\nimport _ \"witan/bus\"",
		"kernel/testdata/repo/x.go": "not Go at all",
		".git/x.go":                 "not Go at all",
	} {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := loadModule(dir)
	if err != nil || len(files) != 2 {
		t.Fatalf("loaded %d files, %v", len(files), err)
	}
	if bad := check(files); len(bad) != 1 || !strings.Contains(bad[0], "kernel/a_windows.go") {
		t.Errorf("a file for another system: %q", bad)
	}
	if err := os.WriteFile(filepath.Join(dir, "broken.go"), []byte("package ("), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := loadModule(dir); err == nil {
		t.Error("a file that does not parse went unnoticed")
	}
}
