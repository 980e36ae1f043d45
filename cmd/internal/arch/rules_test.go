package arch

import (
	"fmt"
	"slices"
	"strings"
)

const module = "witan"

// reach says which layers a layer may import, besides itself. The kernel may
// import the standard library only; "stages" has a rule more: its folders are
// stages, and one never imports another.
var reach = map[string][]string{
	"kernel":      {},
	"bus":         {"kernel"},
	"stores":      {"kernel"},
	"stages":      {"kernel"},
	"ui":          {"kernel"},
	"cmd":         {"kernel", "bus", "stores", "stages", "ui"},
	"testscripts": {"kernel", "bus", "stores", "stages", "ui", "cmd"},
}

// homes says where the modules that a layer wraps may be imported, by prefix of
// the import path, so that satellites of a module count as the module.
var homes = []struct{ prefix, home string }{
	{"github.com/dgraph-io/badger", "stores"},
	{"github.com/ThreeDotsLabs/watermill", "bus"},
	{"github.com/nats-io/", "bus"},
	{"gioui.org", "ui"},
	{"github.com/landlock-lsm/go-landlock", procHome},
	{"github.com/modelcontextprotocol/go-sdk", "stages/invoke/council"},
}

// procHome alone may start, signal and confine processes in the product: other
// packages get a kernel.Runner.
const procHome = "stages/invoke/proc"

// processControl lists what starts, signals or confines a process: a whole
// package, or a function of one.
var processControl = []string{
	"os/exec",
	"os.StartProcess", "os.FindProcess", "os.ProcAttr",
	"syscall.StartProcess", "syscall.ForkExec", "syscall.Exec", "syscall.Kill", "syscall.Wait4", "syscall.CreateProcess",
	"syscall.Setsid", "syscall.Setpgid", "syscall.SysProcAttr", "syscall.TerminateProcess", "syscall.OpenProcess",
	"golang.org/x/sys/unix.Exec", "golang.org/x/sys/unix.Kill", "golang.org/x/sys/unix.Wait4", "golang.org/x/sys/unix.Waitid",
	"golang.org/x/sys/unix.Setsid", "golang.org/x/sys/unix.Setpgid", "golang.org/x/sys/unix.Prctl", "golang.org/x/sys/unix.Tgkill",
	"golang.org/x/sys/unix.PidfdOpen", "golang.org/x/sys/unix.PidfdSendSignal",
	"golang.org/x/sys/windows.CreateProcess", "golang.org/x/sys/windows.TerminateProcess", "golang.org/x/sys/windows.OpenProcess",
	"golang.org/x/sys/windows.CreateJobObject", "golang.org/x/sys/windows.AssignProcessToJobObject",
}

// check returns one line for each breach of a rule, sorted.
func check(files []file) []string {
	ships := product(files)
	var bad []string
	for _, f := range files {
		layer, _, _ := strings.Cut(f.pkg, "/")
		if reach[layer] == nil {
			bad = append(bad, fmt.Sprintf("%s: no Go package belongs at %q; the top level is fixed", f.name, f.pkg))
			continue
		}
		for _, imp := range f.imports {
			if why := refuse(f.pkg, layer, imp); why != "" {
				bad = append(bad, fmt.Sprintf("%s: imports %s: %s", f.name, imp, why))
			}
		}
		if ships(f) && !within(f.pkg, procHome) {
			bad = append(bad, controls(f)...)
		}
	}
	slices.Sort(bad)
	return slices.Compact(bad)
}

// refuse says why pkg may not import imp; "" if it may.
func refuse(pkg, layer, imp string) string {
	target, own := strings.CutPrefix(imp, module+"/")
	switch {
	case own:
		return refuseOwn(pkg, layer, target)
	case !strings.Contains(strings.Split(imp, "/")[0], "."):
		return "" // standard library
	case layer == "kernel":
		return "the kernel uses the standard library only"
	}
	for _, h := range homes {
		if strings.HasPrefix(imp, h.prefix) && !within(pkg, h.home) {
			return "only " + h.home + " may"
		}
	}
	return ""
}

func refuseOwn(pkg, layer, target string) string {
	to, rest, _ := strings.Cut(target, "/")
	if to != layer {
		if !slices.Contains(reach[layer], to) {
			return layer + " may not import " + to
		}
		return ""
	}
	if layer != "stages" {
		return ""
	}
	from, _, _ := strings.Cut(strings.TrimPrefix(pkg, "stages/"), "/")
	if stage, _, _ := strings.Cut(rest, "/"); stage != from {
		return "a stage never imports another stage"
	}
	return ""
}

// controls lists the process control in a file.
func controls(f file) []string {
	var bad []string
	for _, name := range append(slices.Clone(f.imports), f.uses...) {
		if slices.Contains(processControl, name) {
			bad = append(bad, fmt.Sprintf("%s: uses %s: process control belongs in %s (take a kernel.Runner)", f.name, name, procHome))
		}
	}
	return bad
}

// product tells the files that are part of the program from tests, and from the
// tools below cmd: tests start the programs they test, and such a tool is one.
func product(files []file) func(file) bool {
	in := linked(files, "cmd/witan")
	return func(f file) bool {
		layer, _, _ := strings.Cut(f.pkg, "/")
		return !f.test && (in[f.pkg] || layer != "cmd" && layer != "testscripts")
	}
}

// linked returns the packages of the module that a program is built from.
func linked(files []file, program string) map[string]bool {
	deps := map[string][]string{}
	for _, f := range files {
		for _, imp := range f.imports {
			if dep, own := strings.CutPrefix(imp, module+"/"); own && !f.test {
				deps[f.pkg] = append(deps[f.pkg], dep)
			}
		}
	}
	in := map[string]bool{}
	for todo := []string{program}; len(todo) > 0; {
		pkg := todo[0]
		todo = todo[1:]
		if !in[pkg] {
			in[pkg] = true
			todo = append(todo, deps[pkg]...)
		}
	}
	return in
}

func within(pkg, home string) bool { return pkg == home || strings.HasPrefix(pkg, home+"/") }
