package tree

import (
	"context"
	"strconv"
	"strings"

	"witan/kernel"
)

// ModeLink is the mode of a link; those of files are octal permission bits.
const ModeLink = "link"

// Dirty gives the files that differed from a commit the form that Overlay takes.
func Dirty(files []kernel.DirtyFile) []kernel.CandidateFile {
	out := make([]kernel.CandidateFile, len(files))
	for i, d := range files {
		out[i] = kernel.CandidateFile{Path: d.Path, What: d.Status, Hash: d.Hash, Mode: d.Mode, Bytes: d.Bytes}
	}
	return out
}

// Overlay writes files over what is below dir. What is deleted goes first: a file
// may be where a folder was. A file or link that is where a folder must be goes
// too; nothing is followed, so nothing outside of dir is touched. Names that lead
// out of dir, or into a repository's own folder, are Unsupported errors, and
// nothing was written then. After any other error dir is unfinished.
func Overlay(ctx context.Context, p kernel.Packs, files []kernel.CandidateFile, dir string) error {
	for _, f := range files {
		if err := CheckPath(f.Path); err != nil {
			return err
		}
	}
	for _, deleted := range []bool{true, false} {
		for _, f := range files {
			if f.Hash.IsZero() != deleted {
				continue
			}
			name := DecodePath(f.Path)
			to, err := local(dir, name)
			if err == nil && deleted {
				err = remove(dir, name)
			} else if err == nil {
				err = replace(ctx, p, f, dir, to, name)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckPath refuses, as Unsupported, a path of a candidate that leads out of its
// folder or into a repository's own: what is in there decides what git runs.
func CheckPath(path string) error {
	name := DecodePath(path)
	if _, err := local("", name); err != nil {
		return err
	}
	if IsGit(name) {
		return kernel.E("tree.CheckPath", kernel.Unsupported, nil, "%q belongs to git and is no file of a workspace", path)
	}
	return nil
}

// IsGit reports whether a slash-separated name is a repository's own folder, or in
// one, on any file system.
func IsGit(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		part = strings.TrimRight(part, ". ")
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") {
			return true
		}
	}
	return false
}

// TypeOf is the type of an entry that has a mode as files of a candidate have.
func TypeOf(mode string) byte {
	if mode == ModeLink {
		return Link
	}
	if bits, err := strconv.ParseUint(mode, 8, 32); err == nil && bits&0o111 != 0 {
		return Exec
	}
	return File
}

// ModeOf is the mode of an entry of a type.
func ModeOf(t byte) string {
	switch t {
	case Link:
		return ModeLink
	case Exec:
		return "0755"
	}
	return "0644"
}

func replace(ctx context.Context, p kernel.Packs, f kernel.CandidateFile, dir, to, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := clear(dir, name); err != nil {
		return err
	}
	return write(ctx, p, to, name, Entry{Type: TypeOf(f.Mode), Hash: f.Hash, Size: f.Bytes})
}
