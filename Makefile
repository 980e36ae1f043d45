# Everything here works on a machine with Go, git and make; a target that needs
# more installs it where it may (Debian, as root) or says in one sentence what
# is missing.

# The version is the newest tag; without one, what the source says.
VERSION := $(shell git describe --tags --dirty 2>/dev/null)
COMMIT  := $(shell git rev-parse --verify HEAD 2>/dev/null || echo unknown)
LDFLAGS := -X witan/cmd/witan/cli.Commit=$(COMMIT) $(if $(VERSION),-X witan/cmd/witan/cli.Version=$(VERSION))

FUZZTIME ?= 30s
BENCH    ?= .
# Two packages at a time: the tests start hosts and agents of their own.
GOTEST   := -p 2 -timeout 15m

.PHONY: build window-test screenshots run demo test race fuzz bench e2e lint clean need-go

# With the window where it can be built, else for the terminal only.
build: need-go
	@if .ci/need-window; then \
		CGO_ENABLED=1 go build -trimpath -tags novulkan -ldflags '$(LDFLAGS)' -o bin/witan ./cmd/witan; \
	else \
		echo "Building for the terminal only."; \
		CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/witan ./cmd/witan; \
	fi

# The window on a virtual screen, driven by keyboard and pointer.
window-test: build
	.ci/window

# Pictures of each place of the window, in SHOTS=DIR.
screenshots: need-go
	@.ci/need-window
	WITAN_SHOTS=$(abspath $(or $(SHOTS),bin/screenshots)) go test -count 1 -run Routes ./ui/shot

# The window where there is a display, else a run in the terminal.
run: build
	@if [ -n "$$DISPLAY$$WAYLAND_DISPLAY" ]; then ./bin/witan; \
	else ./bin/witan run -C . "Map this project, inspect it and run its tests"; fi

# A council of the built-in agents mends a small repository that it makes.
demo: build
	.ci/demo

test: lint
	.ci/gotest $(GOTEST) ./...

# The tests alone; make race PKG=./bus/... tests a part.
PKG ?= ./...
race: need-go
	.ci/gotest $(GOTEST) $(PKG)

lint: need-go
	@.ci/need-window || true
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | grep -v /testdata/ | xargs -r gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "Run gofmt -w on: $$unformatted" >&2; exit 1; fi
	go vet ./...
	go vet -tags e2e ./testscripts/e2e
	go tool staticcheck ./...
	go tool staticcheck -tags e2e ./testscripts/e2e

fuzz: need-go
	.ci/fuzz $(FUZZTIME)

bench: need-go
	go test -run '^$$' -bench '$(BENCH)' -p 1 -timeout 60m ./...

# A real OpenCode against the scripted model server. Keeps the agent (180 MB) in
# $$WITAN_E2E_CACHE, else in the user's cache directory.
e2e: need-go
	@.ci/need npm nodejs npm
	go test -tags e2e -count 1 -v -timeout 15m ./testscripts/e2e

clean:
	rm -rf bin

need-go:
	@command -v go >/dev/null || { echo "Go is missing: install the version that go.mod names, or a newer one, and run this again." >&2; exit 1; }
	@command -v git >/dev/null || .ci/need git git
