# `make demo` shows agentrt at work; `make test` runs every test. Both install what the machine lacks.

export PATH := $(PATH):$(HOME)/.cargo/bin

.PHONY: help demo test test-svm fuzz bench lint doctor setup

help:
	@echo 'make demo      run real Python programs in virtual machines, and show what they cost'
	@echo 'make test      run every test: units, integration, emulated hardware KVM, 60 s of fuzzing'
	@echo 'make test-svm  run the hardware tests on an emulated two-node machine with AMD SVM'
	@echo 'make fuzz      run the fuzz tests for 60 s'
	@echo 'make bench     run the benchmarks'
	@echo 'make lint      check format and lints'
	@echo 'make doctor    examine this machine'
	@echo 'make setup     install what building and testing need'

setup:
	@tools/setup

demo: setup
	@tools/demo/run

test: setup
	@tools/step "units and integration" cargo test --workspace --no-fail-fast
	@tools/step "emulated hardware KVM" tools/svm/run
	@tools/step "fuzzing" tools/fuzz 60

test-svm: setup
	@tools/svm/run

fuzz: setup
	@tools/fuzz 60

bench: setup
	@cargo build --quiet --release --package agentrt
	@cargo run --quiet --release --package agentrt-bench

lint: setup
	@cargo fmt --all --check
	@cargo clippy --workspace --all-targets -- -D warnings

doctor: setup
	@cargo run --quiet --release --package agentrt -- doctor
