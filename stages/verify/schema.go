package verify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"witan/kernel"
)

type schema struct{ copies }

// Schema returns "verify/schema": the files that claims name are in the
// candidate, with the content that the claim says. It takes a claim about a
// command for what it is: nothing that a file could show.
func Schema(run kernel.Runner, scratch string) kernel.Verify { return schema{copies{run, scratch}} }

func (schema) Spec() kernel.Spec {
	return kernel.Spec{ID: "verify/schema", Version: 1, Class: kernel.Keyed, Touches: []string{"process", "store"},
		Doc: "Checks that the files which claims name exist, with the hash they say", Options: kernel.NoOptions,
		In: kernel.Schema[kernel.Claim](), Out: kernel.Schema[kernel.Verdict]()}
}

func (s schema) Run(ctx context.Context, env kernel.Env, cl kernel.Claim) (kernel.Verdict, error) {
	v, err := base(cl)
	if err != nil {
		return v, err
	}
	look := []int{} // claims that need the files
	for i, c := range cl.Claims {
		if c.Path == "" && c.Hash == "" {
			continue
		}
		if why := malformed(c); why != "" {
			refuse(&v, i, Invalid, "", why)
			continue
		}
		look = append(look, i)
	}
	if len(look) == 0 {
		return v, nil
	}
	sub, err := subjectOf(ctx, env.Packs, cl)
	if err != nil {
		return v, err
	}
	if sub.stale {
		for _, i := range look {
			v.Results[i].Reason = ReasonOldContent
		}
		return v, nil
	}
	cand, err := s.make(ctx, env.Packs, sub)
	if err != nil {
		return v, err
	}
	defer cand.remove()
	root, err := os.OpenRoot(cand.dir)
	if err != nil {
		return v, kernel.E("verify.Schema", kernel.Internal, err, "the clean copy cannot be read")
	}
	defer root.Close()
	for _, i := range look {
		file(&v, i, cl.Claims[i], root)
	}
	return v, nil
}

func malformed(c kernel.ClaimText) string {
	if !filepath.IsLocal(filepath.FromSlash(c.Path)) {
		return fmt.Sprintf("%q names the path %q, which is none of the workspace", c.Text, c.Path)
	}
	if _, err := kernel.ParseDigest(c.Hash); c.Hash != "" && err != nil {
		return fmt.Sprintf("%q names the hash %q, which is none", c.Text, c.Hash)
	}
	return ""
}

// file judges one claim. That a file exists shows nothing about the words; only
// its content does, and not about a command.
func file(v *kernel.Verdict, i int, c kernel.ClaimText, root *os.Root) {
	got, err := sum(root, filepath.FromSlash(c.Path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		refuse(v, i, Contradicted, ReasonContent, fmt.Sprintf("%q names %q, which the candidate does not have", c.Text, c.Path))
	case err != nil: // a way out of the workspace by a link
		refuse(v, i, Invalid, "", fmt.Sprintf("%q names the path %q, which leads out of the workspace", c.Text, c.Path))
	case c.Hash == "":
	case c.Hash != got.String():
		refuse(v, i, Contradicted, ReasonContent, fmt.Sprintf("%q says that %q is %s; it is %s", c.Text, c.Path, c.Hash, got))
	case c.Command == "":
		id := kernel.OutcomeID(kernel.DeriveID(kernel.EvidencePrefix, v.Claim.String(), c.Path, c.Hash))
		v.Outcomes = append(v.Outcomes, kernel.Outcome{Type: "evidence", ID: id, Kind: "file", Level: "observed",
			Summary: c.Path + " has the content that the claim says", Path: c.Path, Hash: got})
		v.Results[i].Verdict, v.Results[i].Reason, v.Results[i].Evidence = Verified, "", []kernel.OutcomeID{id}
	}
}

// sum hashes a file of the copy; a folder has the zero hash.
func sum(root *os.Root, name string) (d kernel.Digest, err error) {
	f, err := root.Open(name)
	if err != nil {
		return d, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || fi.IsDir() {
		return d, err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return d, err
	}
	h.Sum(d[:0])
	return d, nil
}
