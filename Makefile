# Two commands are enough: `make audit` shows what Glasshouse does, `make test` runs every check but that of coverage.
PYTHON ?= $(firstword $(foreach p,python3 python3.14 python3.13 python3.12 python3.11 python,$(if $(shell $(p) -c 'import sys; print(int(sys.version_info >= (3, 11)))' 2>/dev/null | grep 1),$(p),)))
VENV := .venv
BIN := $(VENV)/bin
OUT ?= runs/default

# Wheels of the lock alone, each by its hash. torch is the exception: its CPU build comes from PyTorch's own index (or a
# local file) under another hash, so it is pinned by its version; what it needs is installed by then, from the lock.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check
LOCKED := $(PIP) --no-deps --require-hashes --only-binary :all:
TORCH := $(PIP) --only-binary :all: -c constraints.txt torch==2.13.0
# the build backend is in the lock too: without isolation pip downloads nothing for the build
HERE := $(PIP) --no-deps --no-build-isolation

.PHONY: audit test coverage quick types kernels-gat kernels-gcn-sage docs screenshots format benchmark sbom clean

audit: $(VENV)/.installed
	@$(BIN)/glasshouse audit --out $(OUT) --overwrite

# One thread each: workers that share the cores with each other's threads take three times as long. The order of files
# is that of tests/conftest.py.
test: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(MAKE) --jobs=3 types kernels-gat kernels-gcn-sage
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder $(TRACED)

# the same with every line traced, which takes a third longer; fails where less than 90 % is reached
coverage: TRACED := --cov --cov-report=term
coverage: test

# between two edits: lint, types, and the tests of what differs from the last commit
quick: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	changed="$$($(BIN)/python -m tests.changed)"; test -z "$$changed" || OMP_NUM_THREADS=1 $(BIN)/pytest --quiet \
		--numprocesses 2 --dist worksteal $$changed

types: $(VENV)/.installed-dev
	$(BIN)/mypy

# compiled once and kept: otherwise each of pytest's workers compiles the same kernels
kernels-gat kernels-gcn-sage: $(VENV)/.installed-dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.kernels $(subst -, ,$(@:kernels-%=%))

screenshots: $(VENV)/.installed-dev
	$(BIN)/glasshouse audit --out runs/screenshots --overwrite --quiet
	$(BIN)/python -m docs.scripts.screenshots runs/screenshots/report.html

benchmark: $(VENV)/.installed-dev
	$(BIN)/python benchmarks/records/scoring.py

docs: $(VENV)/.installed-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -d site
	@echo "Manual: $(CURDIR)/site/index.html"

# what a release is made of, for the release's page; CONTRIBUTING.md says how
sbom: $(VENV)/.installed-dev
	$(BIN)/python -m docs.scripts.sbom

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) runs site .mypy_cache .pytest_cache .ruff_cache .coverage build dist

# The stamps follow the files that decide what is installed, so that a changed pin is installed by itself.
$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Glasshouse needs Python 3.11 or newer; none was found. Install one, or say: make PYTHON=/path/to/python3"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt requirements/core.lock requirements/graph.lock
	$(LOCKED) -r requirements/core.lock -r requirements/graph.lock
	$(TORCH)
	$(HERE) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed experiments/pyproject.toml requirements.lock $(wildcard requirements/*.lock)
	$(LOCKED) -r requirements.lock
	$(HERE) -e . -e ./experiments
	@touch $@
