# The commands people type. `make run` and `make test` do all the set-up themselves.

.PHONY: run test check soak conformance fuzz bench

run: ## Build the release binary and show live wind at http://127.0.0.1:8080/
	cargo build --release --bin anemone
	target/release/anemone serve --demo

test: ## Install what the tests need (or say what is missing), then run every test; make test T=hub: those of one crate or file
	scripts/test-tools
	scripts/test $(T)

soak: ## The tests that find more the longer they run, for about an hour
	scripts/soak

check: ## Only what the compiler and the linters say
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings

conformance: ## The whole of Autobahn|Testsuite against the committed results
	cargo build --release --bin anemone --example autobahn_client
	conformance/run

fuzz: ## Each fuzz target for a minute
	scripts/fuzz

PROFILE ?= release
bench: ## What messages, readers and events cost the server, beside a bare TCP echo in C; make bench -- --only hostile; PROFILE=perf keeps symbols
	cargo build --profile $(PROFILE) --bin anemone --bin bench --example measured --example coverage_speed
	target/$(PROFILE)/bench $(ARGS)

# What follows `bench --` are arguments of the program, and no goals. What has a = goes into ARGS="…" instead.
ifeq (bench,$(firstword $(MAKECMDGOALS)))
ifneq (,$(filter-out bench,$(MAKECMDGOALS)))
ARGS ?= $(filter-out bench,$(MAKECMDGOALS))
$(filter-out bench,$(MAKECMDGOALS)):
	@:
.PHONY: $(filter-out bench,$(MAKECMDGOALS))
endif
endif
