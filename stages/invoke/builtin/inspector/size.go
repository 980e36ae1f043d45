package inspector

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path"

	"witan/kernel"
	"witan/stages/invoke/builtin/work"
)

// maxSource is the size beyond which a file does not belong among sources.
const maxSource = 5 << 20

// kept reports whether the file is part of the project, not only lying there:
// without git nobody can tell, so there every file counts.
func (s *scan) kept(file work.File) bool { return file.Tracked || !s.f.Git }

func (s *scan) size(file work.File) {
	if file.Size > maxSource && s.kept(file) {
		s.add(issue{check: "size", severity: "medium", title: "oversized file",
			detail: fmt.Sprintf("%s; more than 5 MiB does not belong among sources.", work.Bytes(file.Size)), path: file.Path, line: 1})
	}
}

// compiled are the first bytes of what tools build from sources.
var compiled = []struct {
	name  string
	magic string
}{
	{"ELF program or object", "\x7fELF"}, {"Mach-O program", "\xcf\xfa\xed\xfe"}, {"Mach-O program", "\xce\xfa\xed\xfe"},
	{"Mach-O program", "\xfe\xed\xfa\xcf"}, {"Java class or universal Mach-O program", "\xca\xfe\xba\xbe"},
	{"library archive", "!<arch>\n"}, {"Python byte code", "\xcb\x0d\x0d\x0a"}, {"Python byte code", "\xa7\x0d\x0d\x0a"},
	{"Python byte code", "\x6f\x0d\x0d\x0a"}, {"Python byte code", "\x61\x0d\x0d\x0a"}, {"Python byte code", "\x55\x0d\x0d\x0a"},
}

// binary reports compiled files, and whether the file was one.
func (s *scan) binary(file work.File, b []byte) bool {
	what := ""
	for _, c := range compiled {
		if bytes.HasPrefix(b, []byte(c.magic)) {
			what = c.name
		}
	}
	if windowsProgram(b) {
		what = "Windows program"
	}
	if what == "" {
		return false
	}
	// A .syso file is what Go links in: it is there on purpose.
	if s.kept(file) && path.Ext(file.Path) != ".syso" {
		s.add(issue{check: "binary", severity: "medium", title: "compiled binary among sources", detail: what + ".", path: file.Path, line: 1})
	}
	return true
}

func windowsProgram(b []byte) bool {
	if len(b) < 0x40 || b[0] != 'M' || b[1] != 'Z' {
		return false
	}
	at := int(b[0x3c]) | int(b[0x3d])<<8 | int(b[0x3e])<<16
	return at+4 <= len(b) && string(b[at:at+4]) == "PE\x00\x00"
}

// hashOnly is evidence for a whole file: its size and hash.
func (s *scan) hashOnly(i issue) (kernel.Outcome, []byte) {
	var size int64
	sum := sha256.New()
	if r, err := s.f.Open(i.path); err == nil {
		size, _ = io.Copy(sum, io.LimitReader(r, 1<<30))
		r.Close()
	}
	content := fmt.Appendf(nil, "path: %s\nbytes: %d\nfile: sha256:%s\n", work.Show(i.path), size, hex.EncodeToString(sum.Sum(nil)))
	return work.Evidence(s.as, "file", "observed", i.path+" as it was read", content)
}
