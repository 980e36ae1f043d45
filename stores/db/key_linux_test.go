package db

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus"

	"witan/kernel"
)

// serveBus is a session bus of this test; handle gets every connection.
func serveBus(t *testing.T, handle func(net.Conn)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "bus") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(dir, "s"))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				handle(c)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
		os.RemoveAll(dir)
	})
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:guid=0,path="+filepath.Join(dir, "s"))
	t.Setenv(KeyFileEnv, "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
}

// hang takes what is sent and says nothing.
func hang(c net.Conn) { _, _ = io.Copy(io.Discard, c) }

// secretService is a keyring with one collection.
type secretService struct {
	mu     sync.Mutex
	locked bool
	items  []secretItem
}

type secretItem struct {
	attributes map[string]string
	value      []byte
}

// serve speaks the part of the bus protocol that a client needs.
func (s *secretService) serve(c net.Conn) {
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		switch word := strings.TrimLeft(strings.TrimSpace(line), "\x00"); {
		case word == "BEGIN":
			s.messages(c, r)
			return
		case word == "AUTH": // which ways are there?
			_, _ = io.WriteString(c, "REJECTED EXTERNAL\r\n")
		case strings.HasPrefix(word, "AUTH EXTERNAL"):
			_, _ = io.WriteString(c, "OK 0123456789abcdef0123456789abcdef\r\n")
		default:
			_, _ = io.WriteString(c, "ERROR\r\n")
		}
	}
}

func (s *secretService) messages(w io.Writer, r io.Reader) {
	for serial := uint32(1); ; serial++ {
		m, err := dbus.DecodeMessage(r)
		if err != nil {
			return
		}
		member, _ := m.Headers[dbus.FieldMember].Value().(string)
		path, _ := m.Headers[dbus.FieldPath].Value().(dbus.ObjectPath)
		reply := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{
			dbus.FieldReplySerial: dbus.MakeVariant(m.Serial())}}
		if reply.Body = s.answer(member, path, m.Body); reply.Body == nil {
			reply.Type = dbus.TypeError
			reply.Headers[dbus.FieldErrorName] = dbus.MakeVariant("org.freedesktop.Secret.Error.IsLocked")
		} else {
			reply.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(reply.Body...))
		}
		var b bytes.Buffer
		if err := reply.EncodeTo(&b, binary.LittleEndian); err != nil {
			return
		}
		binary.LittleEndian.PutUint32(b.Bytes()[8:], serial) // the module numbers messages of connections only
		if _, err := w.Write(b.Bytes()); err != nil {
			return
		}
	}
}

// answer gives the results of a call, nil for an error.
func (s *secretService) answer(member string, path dbus.ObjectPath, in []any) []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch member {
	case "Hello":
		return []any{":1.1"}
	case "OpenSession":
		return []any{dbus.MakeVariant(""), dbus.ObjectPath("/session/1")}
	case "CreateItem":
		if s.locked {
			return []any{dbus.ObjectPath("/"), dbus.ObjectPath("/prompt/1")}
		}
		attributes, _ := in[0].(map[string]dbus.Variant)["org.freedesktop.Secret.Item.Attributes"].Value().(map[string]string)
		s.items = append(s.items, secretItem{attributes, in[1].([]any)[2].([]byte)})
		return []any{s.path(len(s.items) - 1), dbus.ObjectPath("/")}
	case "SearchItems":
		found := []dbus.ObjectPath{}
		for i, item := range s.items {
			if maps.Equal(item.attributes, in[0].(map[string]string)) {
				found = append(found, s.path(i))
			}
		}
		if s.locked {
			return []any{[]dbus.ObjectPath{}, found}
		}
		return []any{found, []dbus.ObjectPath{}}
	case "GetSecret":
		for i, item := range s.items {
			if s.path(i) == path && !s.locked {
				return []any{secret{Session: "/session/1", Parameters: []byte{}, Value: item.value, Type: "text/plain"}}
			}
		}
	}
	return nil
}

func (s *secretService) path(i int) dbus.ObjectPath {
	return dbus.ObjectPath("/item/" + string(rune('a'+i)))
}

func (s *secretService) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// opensWith opens and closes an encrypted directory and gives where its key is.
func opensWith(t *testing.T, dir string) (f Format) {
	t.Helper()
	d, err := Open(t.Context(), Options{Dir: dir, Encryption: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return d.Format
}

// refusedWith wants an error with this next step, and no key made up.
func refusedWith(t *testing.T, dir, next string) {
	t.Helper()
	_, err := Open(t.Context(), Options{Dir: dir, Encryption: true})
	if ke, ok := err.(*kernel.Error); !ok || ke.Kind != kernel.ReadOnly || !strings.Contains(ke.Next, next) {
		t.Fatalf("%v", err)
	}
	if left, err := os.ReadDir(os.Getenv("XDG_CONFIG_HOME")); err != nil || len(left) > 0 {
		t.Fatalf("%v, %v", left, err)
	}
}

func TestKeyring(t *testing.T) {
	s := &secretService{}
	serveBus(t, s.serve)
	dir, other := t.TempDir(), t.TempDir()
	for range 2 {
		for _, dir := range []string{dir, other} {
			f := opensWith(t, dir)
			if where := KeyLocation(f); f.Key != "keyring" || !strings.Contains(where, "keyring") || !strings.Contains(where, f.ID) {
				t.Fatalf("%+v: %s", f, where)
			}
		}
	}
	if len(s.items) != 2 {
		t.Fatalf("%d entries for two directories", len(s.items))
	}
	s.set(func() { s.locked = true })
	refusedWith(t, dir, "unlock")
	kept := s.items
	s.set(func() { s.locked, s.items = false, nil })
	refusedWith(t, dir, "bring back the entry")
	t.Run("no bus", func(t *testing.T) {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
		refusedWith(t, dir, "desktop session")
	})
	s.set(func() { s.items = kept })
	opensWith(t, dir)
}

// TestKeyringUnusable: without a keyring that answers at once and asks nobody,
// the key goes to a file outside the directory, which doctor names.
func TestKeyringUnusable(t *testing.T) {
	for name, handle := range map[string]func(net.Conn){
		"locked": (&secretService{locked: true}).serve, "hangs": hang, "closes": func(net.Conn) {},
	} {
		t.Run(name, func(t *testing.T) {
			serveBus(t, handle)
			dir := t.TempDir()
			for range 2 {
				f := opensWith(t, dir)
				path := filepath.Join(os.Getenv("XDG_CONFIG_HOME"), "witan", "keys", f.ID+".key")
				if fi, err := os.Stat(path); err != nil || fi.Mode().Perm() != 0o600 {
					t.Fatalf("%v, %v", fi, err)
				}
				if where := KeyLocation(f); f.Key != "file" || !strings.Contains(where, path) {
					t.Fatal(where)
				}
			}
		})
	}
}

func TestBusAddress(t *testing.T) {
	for list, want := range map[string]string{
		"":                               "",
		"tcp:host=localhost,port=1":      "",
		"unix:path=/run/user/1/bus":      "/run/user/1/bus",
		"unix:guid=1f,abstract=/tmp/x":   "@/tmp/x",
		"tcp:host=h;unix:path=/a%20b":    "/a b",
		"unix:path=/first;unix:path=/no": "/first",
		"unix:path=%zz":                  "",
	} {
		if got := busAddress(list); got != want {
			t.Errorf("%q gives %q, want %q", list, got, want)
		}
	}
}
