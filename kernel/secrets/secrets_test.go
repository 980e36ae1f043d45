package secrets

import (
	"strings"
	"testing"
)

// The samples are put together here, so that no tool takes this file for a leak.
var samples = []struct{ kind, text, secret string }{
	{"aws access key", "id AK" + "IAQ7ZBNV3KTWPLX2MD.", "AK" + "IAQ7ZBNV3KTWPLX2MD"},
	{"github token", "gh" + "p_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"},
	{"github token", "github" + "_pat_" + strings.Repeat("a1B2c3", 12), strings.Repeat("a1B2c3", 12)},
	{"gitlab token", "gl" + "pat-Zx9_Qw8Er7Ty6Ui5Op4A", "Zx9_Qw8Er7Ty6Ui5Op4A"},
	{"slack token", "xo" + "xb-1234567890-abcdefghijkl", "1234567890-abcdefghijkl"},
	{"slack webhook", "https://hooks.slack" + ".com/services/T01ABCDEF/B02GHIJKL/q1w2e3r4t5y6u7i8o9p0", "q1w2e3r4t5y6u7i8o9p0"},
	{"google api key", "AI" + "zaSyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q", "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q"},
	{"stripe key", "sk" + "_live_4eC39HqLyjWDarjtT1zdp7dc", "4eC39HqLyjWDarjtT1zdp7dc"},
	{"model provider key", "sk" + "-ant-api03-Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0Lm", "Zx9Qw8Er7Ty6Ui5Op4As3Df2Gh1Jk0Lm"},
	{"npm token", "np" + "m_a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"},
	{"json web token", "ey" + "JhbGciOiJIUzI1NiJ9" + ".ey" + "JzdWIiOiIxMjM0NTY3ODkwIn0" + ".dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P", "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"},
	{"assigned secret", `API_KEY="9f86d081884c7d659a2feaa0c55ad015"`, "9f86d081884c7d659a2feaa0c55ad015"},
	{"assigned secret", "aws_secret_access_key = wJ7rXUtnFEMI4K7MDENGbPxRfiCY2ZzQ8Lk3", "wJ7rXUtnFEMI4K7MDENGbPxRfiCY2ZzQ8Lk3"},
	{"assigned secret", "Authorization: Bearer Zx9Qw8Er7Ty6Ui5Op4As3Df2", "Zx9Qw8Er7Ty6Ui5Op4As3Df2"},
}

func TestKnownFormats(t *testing.T) {
	for _, tc := range samples {
		text := "before " + tc.text + " after"
		found := false
		for _, m := range Find(text) {
			found = found || m.Kind == tc.kind && strings.Contains(text[m.Start:m.End], tc.secret)
		}
		if !found {
			t.Errorf("%s: found %v in %q", tc.kind, Find(text), text)
		}
		got := Redact(text)
		if strings.Contains(got, tc.secret) || !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") {
			t.Errorf("%s: redacted %q", tc.kind, got)
		}
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	for _, text := range []string{
		"", "go test ./...", "the token is read from the environment", "password: changeme", "api_key = os.Getenv(\"API_KEY\")",
		"commit 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b", "sha256:" + strings.Repeat("ab", 32),
		"token = strings.TrimSpace(previousAuthorizationHeaderValue)", "secret: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1",
		"sk-" + strings.Repeat("a", 40), "PRIVATE KEY blocks are refused",
	} {
		if m := Find(text); len(m) != 0 {
			t.Errorf("%q: %v", text, m)
		}
		if got := Redact(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestPrivateKeysGoAsAWhole(t *testing.T) {
	const line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7"
	begin, end := "-----BEGIN RSA PRIVATE"+" KEY-----", "-----END RSA PRIVATE"+" KEY-----"
	for name, text := range map[string]string{
		"whole":             "x: " + begin + "\n" + line + "\n" + line + "\n" + end + "\ny!",
		"with headers":      "x: " + begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,AB12\n\n" + line + "\n" + end + "\ny!",
		"on one line":       `x: "` + begin + `\n` + line + `\n` + end + `\n" y!`,
		"its end cut off":   "x: " + begin + "\n" + line + "\n" + line + "\n… y!",
		"its begin cut off": "x: …" + line + "\n" + line + "\n" + end + "\ny!",
	} {
		got := Redact(text)
		if strings.Contains(got, "MIIE") || !strings.Contains(got, "[private key]") || !strings.HasPrefix(got, "x: ") || !strings.HasSuffix(got, "y!") {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestOverlapsAreHiddenOnce(t *testing.T) {
	text := "secret=AK" + "IAQ7ZBNV3KTWPLX2MD" + "_and_more_0123456789"
	if got := Redact(text); got != "secret=[assigned secret]" {
		t.Errorf("%q", got)
	}
}

// Texts that an agent could make to cost time. At this length a search that
// takes the square of it would not end within the time limit of the tests; the
// patterns take linear time by themselves.
func TestManyHalfKeysTakeLinearTime(t *testing.T) {
	for _, piece := range []string{"-----BEGIN PRIVATE" + " KEY-----\n", "-----END PRIVATE" + " KEY-----\n", "-----BEGIN PRIVATE" + " KEY-----MIIE"} {
		n := (2 << 20) / len(piece)
		if got := len(privateKeys(strings.Repeat(piece, n))); got != n {
			t.Errorf("%q: %d of %d", piece, got, n)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, tc := range samples {
		f.Add(tc.text)
	}
	f.Add("-----BEGIN PRIVATE" + " KEY-----\nMIIE\n")
	f.Fuzz(func(t *testing.T, s string) {
		for _, m := range Find(s) {
			if m.Start < 0 || m.Start >= m.End || m.End > len(s) {
				t.Fatalf("%q: %+v", s, m)
			}
		}
		if got := Redact(s); len(Find(s)) == 0 && got != s {
			t.Fatalf("%q became %q without a finding", s, got)
		}
	})
}
