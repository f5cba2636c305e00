# Everything here runs through go: nothing else needs to be installed but git, make
# and sh. Only the race detector needs a C compiler.

GO            ?= go
PKGS          ?= ./...
PREFIX        ?=
# A number of runs, because a deadline sometimes makes go fail a fuzz run.
FUZZTIME      ?= 20000x
# How much `make prove` tries: crash states of the real binary, images of recorded
# disks, duration of the soak. CI uses these values; more is better.
STATES        ?= 2000
IMAGES        ?= 20
SOAK          ?= 30s
# How many of the mutants `make mutants` tries, drawn by a seed; 0 is all.
MUTANTS       ?= 0
# How long the sweeps and the soak may take; 0 is as long as they do.
PROVETIME     ?= 40m
GOLANGCI_LINT ?= $(GO) run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

SOURCES := chipset cmd hook mail nudge roles state

# Go writes the version that `chipset version` prints into the binary itself, from
# the tag or the commit. Without git, or where git distrusts the checkout, it would
# fail instead of leaving the version out.
BUILDVCS   := $(shell git describe --always >/dev/null 2>&1 && echo auto || echo false)
BUILDFLAGS := -trimpath -buildvcs=$(BUILDVCS) -ldflags=-s

.DEFAULT_GOAL := build
.NOTPARALLEL:
.PHONY: help build install test race cli vet lint fuzz prove siege soak mutants systematic bench e2e docs pictures demo verify clean

help: ## list the targets
	@sed -n 's/^\([a-z0-9]*\):[^#]*## /\1	/p' $(firstword $(MAKEFILE_LIST)) | \
		while IFS='	' read -r name text; do printf '  %-8s  %s\n' "$$name" "$$text"; done

build: ## make bin/chipset, one static binary
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -o bin/chipset ./cmd/chipset

install: ## put binary, man pages and completion below PREFIX, or the binary where go install puts it
ifeq ($(PREFIX),)
	CGO_ENABLED=0 $(GO) install $(BUILDFLAGS) ./cmd/chipset
else
	CGO_ENABLED=0 $(GO) build $(BUILDFLAGS) -o $(DESTDIR)$(PREFIX)/bin/chipset ./cmd/chipset
	mkdir -p $(DESTDIR)$(PREFIX)/share/man/man1
	$(DESTDIR)$(PREFIX)/bin/chipset dev man $(DESTDIR)$(PREFIX)/share/man/man1
	set -e; share=$(DESTDIR)$(PREFIX)/share; mkdir -p $$share/bash-completion/completions $$share/zsh/site-functions $$share/fish/vendor_completions.d; \
		$(DESTDIR)$(PREFIX)/bin/chipset completion bash > $$share/bash-completion/completions/chipset; \
		$(DESTDIR)$(PREFIX)/bin/chipset completion zsh > $$share/zsh/site-functions/_chipset; \
		$(DESTDIR)$(PREFIX)/bin/chipset completion fish > $$share/fish/vendor_completions.d/chipset.fish
endif

test: ## run every test, without C as the binary is built
	CGO_ENABLED=0 $(GO) test -timeout 40m $(PKGS)

# Tests of whole rigs and of file systems run other processes, in which the detector
# sees nothing; the doctor's damages are one after the other; the simulator is one goroutine.
RACEPKGS = $(shell $(GO) list $(PKGS) | grep -vE '/chipset/(chipsettest|doctor|simulate)|/statetest/(blockcut|powercut)')

race: ## run the tests under the race detector (needs a C compiler)
	@if [ "$$($(GO) env CGO_ENABLED)" = 1 ]; then \
		echo '$(GO) test -race -short'; $(GO) test -race -short -timeout 20m $(RACEPKGS); \
	else \
		echo 'race: no C compiler, and the race detector needs one: running the tests without it' >&2; \
		$(GO) test -short $(RACEPKGS); \
	fi

cli: ## run the command-line tests, with the real main
	$(GO) test ./cmd/...

vet: ## run go vet, for Linux and for macOS
	GOOS=linux $(GO) vet $(PKGS)
	GOOS=darwin $(GO) vet $(PKGS)

lint: vet ## check format, vet, import rules and style
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

# A kill hits at a different place in each run, so these never come from the cache.
# Each prints its seed; CHIPSET_SEED repeats its choices.
prove: ## cut the power, kill and inject faults (docs/durability.md)
	CHIPSET_FULL=1 $(GO) test -count=1 -timeout 15m -run Crash ./state/... ./mail ./hook ./nudge
	CHIPSET_STATES=$(STATES) CHIPSET_IMAGES=$(IMAGES) CHIPSET_SOAK=$(SOAK) $(GO) test -count=1 -v -timeout $(PROVETIME) \
		-run 'Sweep|RealFileSystems|Soak|Linearizable|Kills|KilledSnapshots' ./chipset/chipsettest

siege: ## run every hostile act of docs/SECURITY.md against a rig
	CHIPSET_FULL=1 $(GO) test -timeout 40m -count=1 -run '^Test(Siege|Without)$$' ./chipset/chipsettest

soak: ## make prove for hours: SOAK=2h STATES=20000 IMAGES=100, and every mutant
	$(MAKE) prove PROVETIME=0 STATES=20000 IMAGES=100 SOAK=$(or $(filter-out 30s,$(SOAK)),2h)
	$(MAKE) mutants MUTANTS=0

mutants: ## weaken the protocol in one place at a time; a test must notice each
	$(GO) run ./chipset/chipsettest/mutants -sample $(MUTANTS)

systematic: ## try every generated mutant, about 9,000, in hours
	$(GO) run ./chipset/chipsettest/mutants -systematic

bench: ## measure, each beside its baseline in the same run
	$(GO) test -run '^$$' -bench . -benchtime 1s ./state/... ./mail ./chipset/... ./cmd/...

# The real clients against a stand-in for their models: no account, no network but
# except for the installation. npm no longer runs install scripts by itself; two of these
# packages need theirs to fetch the program for this machine.
E2E_DIR     ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/chipset-e2e
E2E_CLIENTS := @anthropic-ai/claude-code@2.1.329 @openai/codex@0.169.0 @google/gemini-cli@0.61.0 opencode-ai@1.18.33
# Checkers of the Model Context Protocol, and the Node that they need.
E2E_CHECKERS := @modelcontextprotocol/inspector@2.12.0 @modelcontextprotocol/conformance@0.1.16 node@22

e2e: ## run whole rigs with the real clients, and checkers of MCP, from npm in E2E_DIR
	npm install --no-audit --no-fund --prefix $(E2E_DIR) $(E2E_CLIENTS) $(E2E_CHECKERS)
	cd $(E2E_DIR)/node_modules/@anthropic-ai/claude-code && node install.cjs
	cd $(E2E_DIR)/node_modules/opencode-ai && node postinstall.mjs
	[ -x $(E2E_DIR)/node_modules/node/bin/node ] || { cd $(E2E_DIR)/node_modules/node && node installArchSpecificPackage; }
	MCP_CHECKERS=$(E2E_DIR)/node_modules/.bin $(GO) test -count=1 -timeout 30m -v -run 'Conformance|Inspector' ./chipset/mcpserver ./chipset/chipsettest
	CHIPSET_E2E=$(E2E_DIR)/node_modules/.bin $(GO) test -count=1 -timeout 60m -v ./chipset/chipsettest/e2e

docs: ## generate docs/commands.md from the commands' help
	$(GO) test ./cmd/chipset -run TestCommandReference -update

pictures: ## redraw the pictures of the README and the docs (needs tmux and Chromium)
	CHIPSET_PICTURES=$(CURDIR)/docs/pictures $(GO) test ./cmd/chipset -run '^Test(Pictures|Recording)$$' -count=1

demo: build ## build, and run the demo in a throw-away repository
	bin/chipset demo

# Results of an unchanged `make test` come from go's cache.
verify: build test lint race fuzz prove mutants ## everything CI checks
	@echo 'verify: all passed'

clean: ## remove what was built
	rm -rf bin
