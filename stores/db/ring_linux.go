package db

import (
	"encoding/hex"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/godbus/dbus"
)

// The keyring of Linux desktops is a Secret Service on the session bus. We talk
// to it ourselves, only when a key is needed, and within keyringWait: the
// keyring module opens the bus while the program starts, in every process, and
// waits for ever for a bus that does not answer. Nothing here makes the desktop
// ask the person: a locked keyring is an error.
const (
	secrets        = "org.freedesktop.secrets"
	secretsPath    = dbus.ObjectPath("/org/freedesktop/secrets")
	defaultSecrets = dbus.ObjectPath("/org/freedesktop/secrets/aliases/default")
	secretPrefix   = "org.freedesktop.Secret."
)

// secret is a value as the service passes it.
type secret struct {
	Session    dbus.ObjectPath
	Parameters []byte
	Value      []byte
	Type       string
}

// ringGet reads the key of a data directory from the keyring.
func ringGet(id string) (key []byte, err error) {
	err = withSecrets(func(c *dbus.Conn, session dbus.ObjectPath) error {
		var open, locked []dbus.ObjectPath
		if err := c.Object(secrets, secretsPath).Call(secretPrefix+"Service.SearchItems", 0, attributes(id)).Store(&open, &locked); err != nil {
			return err
		}
		if len(open) == 0 {
			if len(locked) > 0 {
				return errors.New("the keyring is locked")
			}
			return errNoEntry
		}
		var s secret
		if err := c.Object(secrets, open[0]).Call(secretPrefix+"Item.GetSecret", 0, session).Store(&s); err != nil {
			return err
		}
		key, err = hex.DecodeString(string(s.Value))
		return err
	})
	return key, err
}

// ringSet stores the key of a data directory in the default keyring.
func ringSet(id string, key []byte) error {
	return withSecrets(func(c *dbus.Conn, session dbus.ObjectPath) error {
		properties := map[string]dbus.Variant{
			secretPrefix + "Item.Label":      dbus.MakeVariant(ringLabel),
			secretPrefix + "Item.Attributes": dbus.MakeVariant(attributes(id)),
		}
		value := secret{Session: session, Parameters: []byte{}, Value: []byte(hex.EncodeToString(key)), Type: "text/plain"}
		var item, prompt dbus.ObjectPath
		err := c.Object(secrets, defaultSecrets).Call(secretPrefix+"Collection.CreateItem", 0, properties, value, true).Store(&item, &prompt)
		if err == nil && prompt != "/" {
			err = errors.New("the keyring is locked")
		}
		return err
	})
}

func attributes(id string) map[string]string {
	return map[string]string{"application": service, "id": id}
}

// withSecrets calls f with a session of the service, all within keyringWait.
func withSecrets(f func(c *dbus.Conn, session dbus.ObjectPath) error) error {
	address := busAddress(os.Getenv("DBUS_SESSION_BUS_ADDRESS"))
	if address == "" {
		return errors.New("there is no session bus")
	}
	raw, err := net.DialTimeout("unix", address, keyringWait)
	if err != nil {
		return err
	}
	defer raw.Close() // ends the connection's goroutine too
	if err := raw.SetDeadline(time.Now().Add(keyringWait)); err != nil {
		return err
	}
	c, err := dbus.NewConn(raw)
	if err != nil {
		return err
	}
	if err := c.Auth(nil); err != nil {
		return err
	}
	if err := c.Hello(); err != nil {
		return err
	}
	var output dbus.Variant
	var session dbus.ObjectPath
	if err := c.Object(secrets, secretsPath).Call(secretPrefix+"Service.OpenSession", 0, "plain", dbus.MakeVariant("")).Store(&output, &session); err != nil {
		return err
	}
	return f(c, session)
}

// busAddress gives the socket of the first address of a list that has one.
func busAddress(list string) string {
	for address := range strings.SplitSeq(list, ";") {
		rest, ok := strings.CutPrefix(address, "unix:")
		for pair := range strings.SplitSeq(rest, ",") {
			name, value, _ := strings.Cut(pair, "=")
			value, err := url.PathUnescape(value)
			if !ok || err != nil || value == "" {
				continue
			}
			switch name {
			case "path":
				return value
			case "abstract":
				return "@" + value
			}
		}
	}
	return ""
}
