# Everything here runs through go: nothing else needs to be installed but git, make
# and sh. A C compiler is needed for the race detector alone.

GO            ?= go
PKGS          ?= ./...
PREFIX        ?=
# A number of runs, because go's own deadline of a fuzz run sometimes fails it.
FUZZTIME      ?= 20000x
CRASHCOUNT    ?= 2
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

SOURCES := chipset cmd hook mail nudge roles state

# Go writes the version that `chipset version` prints into the binary itself, from
# the tag or the commit. Without git, or where git distrusts the checkout, it would
# fail instead of leaving the version out.
BUILDVCS   := $(shell git describe --always >/dev/null 2>&1 && echo auto || echo false)
BUILDFLAGS := -trimpath -buildvcs=$(BUILDVCS) -ldflags=-s

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: help build install test race cli vet lint fuzz crash docs demo verify clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## /\1	/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='	' read -r name text; do printf '  %-8s  %s\n' "$$name" "$$text"; done

build: ## make bin/chipset, one static binary
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -o bin/chipset ./cmd/chipset

install: ## put the binary into PREFIX/bin, or where go install puts it
ifeq ($(PREFIX),)
	CGO_ENABLED=0 $(GO) install $(BUILDFLAGS) ./cmd/chipset
else
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -o $(DESTDIR)$(PREFIX)/bin/chipset ./cmd/chipset
endif

test: ## run every test
	$(GO) test $(PKGS)

race: ## run every test under the race detector (needs a C compiler)
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ]; then \
		echo '$(GO) test -race $(PKGS)'; $(GO) test -race $(PKGS); \
	else \
		echo 'race: no C compiler, and the race detector needs one: running the tests without it' >&2; \
		echo '$(GO) test $(PKGS)'; $(GO) test $(PKGS); \
	fi

cli: ## run the command-line tests, with the real main
	$(GO) test ./cmd/...

vet: ## run go vet, for Linux and for macOS
	GOOS=linux $(GO) vet $(PKGS)
	GOOS=darwin $(GO) vet $(PKGS)

lint: vet ## check format, vet, layers and manner
	@unformatted=$$("$$($(GO) env GOROOT)/bin/gofmt" -l $(SOURCES)) || exit 1; \
		[ -z "$$unformatted" ] || { printf 'not formatted by gofmt:\n%s\n' "$$unformatted" >&2; exit 1; }
	$(GOLANGCI_LINT) run $(PKGS)

# go fuzzes one target of one package at a time, so the packages are found by text
# and their targets, as the build tags leave them, by go itself.
fuzz: ## fuzz every fuzz target for FUZZTIME
	@for dir in $$(grep -rlE '^func Fuzz' --include='*_test.go' $(SOURCES) | sed 's|/[^/]*$$||' | sort -u); do \
		list=$$($(GO) test -list '^Fuzz' "./$$dir") || { printf '%s\n' "$$list" >&2; exit 1; }; \
		for target in $$(printf '%s\n' "$$list" | grep '^Fuzz'); do \
			echo "fuzz ./$$dir $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "./$$dir" || exit 1; \
		done; \
	done

# Where a kill hits differs from run to run, so these never come from the cache.
crash: ## run the tests that kill processes, CRASHCOUNT times over
	@dirs=$$(grep -rlE '^func Test[A-Za-z0-9_]*(Kill|Crash)' --include='*_test.go' $(SOURCES) | sed 's|/[^/]*$$||; s|^|./|' | sort -u); \
		[ -n "$$dirs" ] || { echo 'crash: no test is named after a kill or a crash' >&2; exit 1; }; \
		echo $(GO) test -count=$(CRASHCOUNT) -run "'^Test.*(Kill|Crash)'" $$dirs; \
		$(GO) test -count=$(CRASHCOUNT) -run '^Test.*(Kill|Crash)' $$dirs

docs: ## write docs/commands.md anew from the commands' own help
	$(GO) test ./cmd/chipset -run TestCommandReference -update

demo: build ## build, and play the demo in a throw-away repository
	bin/chipset demo

# What `make test` has just run and nothing has touched since comes from go's cache.
verify: build vet lint race cli fuzz crash ## everything CI checks
	@echo 'verify: all passed'

clean: ## remove what was built
	rm -rf bin
