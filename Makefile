# `make run` and `make test` need nothing but Python 3.11 and tmux 3.3; they set up the rest in .venv.
# Written for GNU make 3.81 and newer, which is what macOS has.

# Where they set it up. A second Python has its own: make test VENV=build/venv-3.13 PYTHON=python3.13
VENV := .venv
PY := $(VENV)/bin/python
# More arguments for pytest: make test ARGS='-k redact -x'
ARGS :=
# Two tests a core: most of their time they wait for other processes.
WORKERS := $(shell expr 2 \* `getconf _NPROCESSORS_ONLN`)
PARALLEL := -n $(WORKERS) --dist worksteal

# Thousands of our processes are started by the tests: compiled once, they take a sixth less time in all.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run test again check fmt coverage agents bench fuzz soak scoreboard corpus schemas clean system has-needed FORCE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

run: has-needed $(VENV)/.ready-run ## set up, start the daemon and show what is alive (a demo if nothing is)
	@$(VENV)/bin/agtmux up --demo-if-empty

test: system $(VENV)/.ready-dev ## set up and run the tests in parallel (ARGS='-k name' for some)
	@$(PY) -m pytest $(PARALLEL) $(ARGS)

again: $(VENV)/.ready-dev ## what failed in the last `make test`, alone and three times
	@$(PY) tests/again.py

check: $(VENV)/.ready-dev ## ruff, mypy --strict, and which package may import which
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy
	@$(PY) -m pytest --quiet tests/unit/test_imports.py

fmt: $(VENV)/.ready-dev ## format and sort imports
	@$(PY) -m ruff check --select I --fix --quiet .
	@$(PY) -m ruff format .

coverage: system $(VENV)/.ready-dev ## the tests with branch coverage, daemons and hooks included
	@$(PY) -m coverage erase
	@$(PY) -m coverage run -m pytest $(PARALLEL) $(ARGS)
	@$(PY) -m coverage combine --quiet
	@$(PY) -m coverage report

agents: system $(VENV)/.ready-dev ## drive the real agents through every state, with hooks and without
	@$(PY) -m pytest -m agents tests/agents $(ARGS)

bench: system $(VENV)/.ready-dev ## measure the budgets and print one table
	@$(PY) tests/bench/run.py

fuzz: $(VENV)/.ready-dev ## the property tests with many more examples than usual
	@$(PY) -m pytest $(PARALLEL) -m hypothesis --hypothesis-profile fuzz --timeout 1800 $(ARGS)

soak: system $(VENV)/.ready-dev ## the tests that repeat for minutes (marked `soak`)
	@$(PY) -m pytest -m soak --timeout 3600 $(ARGS)

scoreboard: $(VENV)/.ready-dev ## how right the screen rules are, written to docs/detection.md
	@$(PY) tests/corpus/scoreboard.py --write

corpus: system $(VENV)/.ready-dev ## record agents' screens anew from the real programs (ARGS='--agent NAME')
	@$(PY) tests/agents/record.py $(ARGS)

schemas: $(VENV)/.ready-dev ## write the JSON Schema documents of the API's answers, and what the bridge says of itself, anew
	@$(PY) -m agtmux.api.schemas resources/schemas
	@mkdir -p resources/mcp && $(PY) -m agtmux.bridge.server resources/mcp/tools.json

clean: ## remove what make and the tools have made, .venv included
	rm -rf .venv build dist daemon/*.egg-info .coverage .coverage.* htmlcov
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

system:
	@tests/setup-system

has-needed:
	@tests/setup-system --check tmux python

# The hook command is composed from these sources when the package is installed.
INSTALLED_FROM := pyproject.toml $(wildcard setup.py daemon/agtmux/hook/*.py daemon/agtmux/domain/redact.py)

$(VENV)/.ready-run: $(INSTALLED_FROM)
	@sh -c "$$SCRIPT" set-up . agtmux
	@touch $@

$(VENV)/.ready-dev: $(INSTALLED_FROM)
	@sh -c "$$SCRIPT" set-up '.[dev,chat]' 'agtmux and its development tools'
	@touch $@ $(VENV)/.ready-run

# An environment whose interpreter was removed or is not the PYTHON that is asked for, or whose folder was moved, is not
# ready whatever its stamps say.
IS_ASKED_FOR := version='import sys; print(sys.version)'; \
    [ -z "$(PYTHON)" ] || [ "`'$(PYTHON)' -c "$$version"`" = "`$(PY) -c "$$version"`" ]
ifneq ($(shell ([ "`cat $(VENV)/.made-in`" = "`pwd`" ] && $(PY) -c '' && $(IS_ASKED_FOR) && echo usable) 2>/dev/null),usable)
$(VENV)/.ready-run $(VENV)/.ready-dev: FORCE
endif

# Arguments: what pip installs, and how to call it. .made-in holds the folder the environment was made in, and
# `unfinished` while it is being made, so an interrupted or moved one is made again. One without that file was made
# by hand and is kept.
define SET_UP
fail() { printf 'agtmux: %s\n' "$$1" >&2; exit 1; }

find_python() {
    without_venv=
    if [ -n "$$PYTHON" ]; then set -- "$$PYTHON"; else set -- python3.13 python3.12 python3.11 python3; fi
    for python; do
        recent=$$("$$python" -c 'import sys; print(sys.version_info >= (3, 11))' 2>/dev/null)
        [ "$$recent" = True ] || continue
        "$$python" -c 'import ensurepip, venv' 2>/dev/null && return
        without_venv=$$python
    done
    [ -z "$$without_venv" ] ||
        fail "$$without_venv cannot make virtual environments. On Debian and Ubuntu: apt-get install python3-venv"
    [ -z "$$PYTHON" ] || fail "PYTHON=$$PYTHON is not a Python 3.11 or newer."
    fail "no Python 3.11 or newer in PATH. Install one, or name it: make PYTHON=/path/to/python3 ..."
}

trap 'exit 130' INT TERM HUP
state=$(VENV)/.made-in
is_usable() {
    [ "$$(cat $$state)" = "$$(pwd)" ] && { $(IS_ASKED_FOR); } 2>/dev/null
}

if [ -e $$state ] && ! is_usable || ! $(VENV)/bin/python -m pip --version >/dev/null 2>&1; then
    find_python
    echo "agtmux: making $(VENV) with $$("$$python" -c 'import sys; print(sys.executable, sys.version.split()[0])')"
    rm -rf $(VENV) && mkdir -p $(VENV) && echo unfinished >$$state || exit 1
    "$$python" -m venv $(VENV) || fail "$$python could not make a virtual environment in $(VENV) (the reason is above)."
fi
echo "agtmux: installing $$2 into $(VENV)"
echo unfinished >$$state
# The Agent SDK's wheels carry a program of 350 MB. Its source does without, and the tests have the program from npm.
case $$1 in *chat*) small='--no-binary claude-agent-sdk' ;; *) small= ;; esac
$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-input $$small --editable "$$1"
status=$$?
# pip undoes its own failures, so only a signal leaves the environment unfinished.
pwd >$$state
[ $$status -eq 0 ] || fail "pip could not install $$2 (the reason is above)."
endef

# For these alone, so that no daemon or tmux server inherits it.
$(VENV)/.ready-run $(VENV)/.ready-dev: export SCRIPT = $(SET_UP)
