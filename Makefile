# SPDX-License-Identifier: MIT
# `make help` lists what there is to make. Everything runs from .venv, which scripts/bootstrap fills.

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
TOX := $(BIN)/tox run
# root where the kernel asks for it, and only there
SUDO := $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
ARGS ?=

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | sort | \
		while IFS="$$(printf '\t')" read -r target text; do printf '  %-42s %s\n' "$$target" "$$text"; done

.PHONY: bootstrap
bootstrap: ## install what is missing (apt, .venv); quick when nothing is
	@scripts/bootstrap

.PHONY: build
build: bootstrap ## compile the native parts in place
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .

.PHONY: demo
demo: bootstrap ## watch the kernel decide three findings on this machine (root)
	$(SUDO) $(BIN)/kubectl-pacto demo $(ARGS)

.PHONY: test
test: bootstrap ## everything that CI promises
	$(TOX)

.PHONY: test-unit
test-unit: bootstrap ## no root, no network (ARGS="-- -k name" for one)
	$(TOX) -e unit $(ARGS)

.PHONY: test-native
test-native: bootstrap ## compiled readers against their plain-Python twins
	$(TOX) -e native $(ARGS)

.PHONY: test-kernel
test-kernel: bootstrap ## the BPF program in this kernel (root)
	$(TOX) -e kernel --notest
	$(SUDO) .tox/kernel/bin/python -m pytest -p no:cacheprovider tests/kernel $(ARGS)

.PHONY: test-cluster
test-cluster: bootstrap ## a real cluster on this machine (root, go; PACTO_CLUSTER=NAME keeps one)
	$(TOX) -e cluster $(ARGS)

.PHONY: test-kernels
test-kernels: bootstrap ## Debian's 5.10, 6.1 and 6.12 in an emulator (root)
	$(TOX) -e kernels $(ARGS)

.PHONY: test-kernels-full
test-kernels-full: bootstrap ## the whole kernel tier on each of them, into docs/kernels.md (root; an hour)
	$(TOX) -e kernels --notest
	$(SUDO) .tox/kernels/bin/python -m tests.cluster deps images kernels
	$(SUDO) .tox/kernels/bin/python -m tests.kernels tier --write $(ARGS)

.PHONY: test-kernels-arm64
test-kernels-arm64: bootstrap ## listeners and connections under a kernel of arm64, the wheel of dist/release (root)
	$(TOX) -e kernels --notest
	$(SUDO) .tox/kernels/bin/python -m tests.cluster deps images kernels kernels-arm64
	$(SUDO) .tox/kernels/bin/python -m tests.kernels tier --suite bookworm --arm64 dist/release \
		$(or $(ARGS),tests/kernel/test_listeners.py tests/kernel/test_connections.py)

# local where no docker engine answers
CLUSTER ?=
ON_CLUSTER := $(SUDO) env $(if $(CLUSTER),CLUSTER=$(CLUSTER))

.PHONY: e2e-up
e2e-up: bootstrap ## a cluster with the images, kept (CLUSTER=kind|local)
	$(ON_CLUSTER) $(BIN)/python -m tests.cluster deps
	$(ON_CLUSTER) $(BIN)/python -m tests.cluster --name e2e e2e-up

.PHONY: e2e-down
e2e-down: bootstrap ## end that cluster, leave nothing
	$(ON_CLUSTER) $(BIN)/python -m tests.cluster --name e2e e2e-down

.PHONY: acceptance
acceptance: bootstrap ## every scenario on a real cluster (CLUSTER=kind|local)
	$(ON_CLUSTER) $(BIN)/tox run -e acceptance $(ARGS)

.PHONY: acceptance-docs
acceptance-docs: bootstrap ## the same, and docs/acceptance.md from it
	$(ON_CLUSTER) PACTO_ACCEPTANCE_DOCS=$(CURDIR)/docs/acceptance.md $(BIN)/tox run -e acceptance

.PHONY: acceptance-upgrade
acceptance-upgrade: bootstrap ## from the previous release to this one, on a real cluster (CLUSTER=kind|local)
	$(ON_CLUSTER) $(BIN)/tox run -e acceptance -- -k test_upgrade $(ARGS)

.PHONY: faults
faults: bootstrap ## what is claimed while things break, fault by fault (CLUSTER=kind|local)
	$(ON_CLUSTER) $(BIN)/tox run -e faults $(ARGS)

.PHONY: faults-docs
faults-docs: bootstrap ## the same, and docs/faults.md from it
	$(ON_CLUSTER) PACTO_FAULTS_DOCS=$(CURDIR)/docs/faults.md $(BIN)/tox run -e faults

.PHONY: test-acceptance-kind-runtime-conformance
test-acceptance-kind-runtime-conformance: ## the specification's name: acceptance on kind (docker)
	$(MAKE) acceptance CLUSTER=kind

.PHONY: e2e-runtime-conformance-kind-up
e2e-runtime-conformance-kind-up: ## the specification's name: the same cluster, kept (docker)
	$(MAKE) e2e-up CLUSTER=kind

.PHONY: test-ebpf
test-ebpf: test-kernel ## the specification's name: the real program, loaded and attached

.PHONY: test-packaging
test-packaging: bootstrap ## sdist, wheels and installs
	$(TOX) -e packaging $(ARGS)

.PHONY: test-browser
test-browser: bootstrap ## the HTML report in Chromium (root, for its package)
	$(TOX) -e browser $(ARGS)

.PHONY: test-chart
test-chart: bootstrap ## the Helm chart against a real helm (go)
	$(TOX) -e chart $(ARGS)

.PHONY: chart
chart: bootstrap ## the Helm chart's archive, into dist/charts
	$(BIN)/python scripts/chart_archive.py $(ARGS)

.PHONY: krew
krew: bootstrap ## the krew archive of this platform and its manifest, into dist/krew
	$(BIN)/python scripts/krew.py $(ARGS)

.PHONY: release-dry-run
release-dry-run: bootstrap ## all that a release has, into dist/release, verified; publishes nothing (root for the image)
	$(SUDO) $(BIN)/python scripts/release.py $(ARGS)

.PHONY: bench
bench: bootstrap ## figures of this machine, beside a ratio of the same run (root)
	@for one in $(filter-out %/operator_churn.py,$(wildcard tests/bench/[a-z]*.py)); do \
		$(SUDO) $(BIN)/python -m tests.bench.$$(basename $$one .py) || exit; done

.PHONY: bench-churn
bench-churn: bootstrap ## the operator through 24 simulated hours (minutes; ARGS="--hours 48")
	$(BIN)/python -m tests.bench.operator_churn $(ARGS)

.PHONY: soak
soak: bootstrap ## the agent's memory over 10,000 publishes and 5,000 pods, into docs/soak.txt (root, a quarter of an hour)
	{ echo '$$ python -m tests.bench.churn'; $(SUDO) $(BIN)/python -m tests.bench.churn; } | tee docs/soak.txt
	{ echo '$$ python -m tests.bench.soak'; $(SUDO) $(BIN)/python -m tests.bench.soak; } | tee -a docs/soak.txt

.PHONY: fuzz
fuzz: bootstrap ## coverage-guided fuzzing of every parser (SECONDS=60 each; clang and its runtime)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check atheris
	$(BIN)/python -m tests.fuzz $(SECONDS)

.PHONY: lint
lint: bootstrap ## ruff, cython-lint, clang-format, import contracts
	$(TOX) -e lint

.PHONY: types
types: bootstrap ## mypy, strict
	$(TOX) -e types

.PHONY: imports
imports: $(BIN)/lint-imports ## the import contracts alone
	PYTHONPATH=.:agent:ext $<

.PHONY: fmt
fmt: $(BIN)/ruff ## format Python and C
	$(BIN)/ruff check --fix --quiet . || true
	$(BIN)/ruff format --quiet .
	git ls-files '*.c' '*.h' | xargs $(BIN)/clang-format -i

.PHONY: gen
gen: bootstrap ## write the generated files anew
	$(BIN)/python scripts/generate.py

.PHONY: hooks
hooks: $(BIN)/pre-commit ## check each commit before it is made
	$(BIN)/pre-commit install

.PHONY: clean
clean: ## remove what was built, .venv stays
	rm -rf build dist .tox *.egg-info
	find ext agent -name '*.so' -o -name '*.o' | xargs rm -f

# the tools of a contributor, at the versions of pyproject.toml
$(BIN)/lint-imports $(BIN)/ruff $(BIN)/pre-commit:
	@scripts/bootstrap
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --group dev
