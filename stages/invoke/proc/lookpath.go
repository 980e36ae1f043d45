package proc

import (
	"os"
	"path/filepath"

	"witan/kernel"
)

// lookPath finds the program on the PATH it will run with.
func lookPath(s Spec) (string, error) {
	const op = "proc.lookPath"
	if filepath.Base(s.Path) != s.Path {
		p := s.Path
		if !filepath.IsAbs(p) {
			p = filepath.Join(s.Dir, p)
		}
		fi, err := os.Stat(p)
		switch {
		case err != nil:
			return "", kernel.E(op, kernel.NotFound, nil, "%s does not exist", s.Path).WithNext("check the command")
		case fi.IsDir() || !executable(fi):
			return "", kernel.E(op, kernel.Invalid, nil, "%s is not an executable file", s.Path).WithNext("check the command and its permissions")
		}
		return p, nil
	}
	for _, dir := range filepath.SplitList(getenv(s.Env, "PATH")) {
		if dir == "" {
			continue
		}
		for _, ext := range extensions(s.Env) {
			p := filepath.Join(dir, s.Path+ext)
			if fi, err := os.Stat(p); err == nil && !fi.IsDir() && executable(fi) {
				return filepath.Abs(p)
			}
		}
	}
	return "", kernel.E(op, kernel.NotFound, nil, "%s is not on the PATH", s.Path).WithNext("install it, or give its whole path")
}

// LookPath finds a program on the host's PATH.
func LookPath(name, dir string) (string, error) {
	return lookPath(Spec{Path: name, Dir: dir, Env: os.Environ()})
}

// checkDir refuses a folder that a program cannot be started in; the system
// would blame the program.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	fi, err := os.Stat(dir)
	switch {
	case err != nil:
		return kernel.E("proc.Start", kernel.NotFound, err, "the folder %s cannot be used", dir).WithNext("check the folder")
	case !fi.IsDir():
		return kernel.E("proc.Start", kernel.Invalid, nil, "%s is not a folder", dir).WithNext("check the folder")
	}
	return nil
}

func getenv(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := cutKey(env[i], key); ok {
			return v
		}
	}
	return ""
}

func cutKey(kv, key string) (string, bool) {
	if len(kv) > len(key) && kv[len(key)] == '=' && kv[:len(key)] == key {
		return kv[len(key)+1:], true
	}
	return "", false
}
