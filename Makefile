# `make help` lists the targets. The environment is made on first use and again when what it is made from
# changes: the pyproject files, requirements-dev.txt, TORCH.
PYTHON ?= python3
# TORCH=2.13 runs in an environment of its own, with that torch.
TORCH ?=
# Further arguments of pytest: make test ARGS="-k gelu"
ARGS ?=

VENV := $(if $(TORCH),.venv-torch$(TORCH),.venv)
BIN := $(VENV)/bin
RUN := $(BIN)/python -m
DEMO := build/demo

SOURCES := pyproject.toml core/pyproject.toml $(sort $(wildcard plugins/*/pyproject.toml)) requirements-dev.txt
KEY := $(shell $(PYTHON) -c 'import hashlib, sys; \
	print(hashlib.sha256(b"".join(open(f, "rb").read() for f in sys.argv[2:]) + sys.argv[1].encode()).hexdigest())' \
	"$(TORCH)" $(SOURCES))
STAMP := $(VENV)/.made-from-$(KEY)

# torchvision and timm are built for the newest torch only; tests that need them are skipped without them.
PACKAGES := $(if $(TORCH),$(VENV)/requirements.txt 'torch~=$(TORCH).0',requirements-dev.txt)

# Tests run in two processes; more threads inside them only get in each other's way.
export OMP_NUM_THREADS ?= 1
PYTEST = $(RUN) pytest $$($(BIN)/python -c 'from importlib.util import find_spec; \
	print("-n 2 --dist loadfile" if find_spec("xdist") else "")')

.PHONY: help env demo test test-all lint bench docs clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo      export the example models, verify them in ONNX Runtime, say where the files are'
	@echo 'make test      the tests, without the slow ones      (TORCH=2.13: with that torch)'
	@echo 'make test-all  all tests'
	@echo 'make lint      ruff and mypy'
	@echo 'make bench     compare with torch.onnx'
	@echo 'make docs      write docs/operators.md, check the links and the code of the documentation'
	@echo 'make clean     remove environments, caches and build results'

env: $(STAMP)

$(STAMP):
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH),grep -vE '^(torchvision|timm)$$' requirements-dev.txt > $(VENV)/requirements.txt)
	$(RUN) pip install -r $(PACKAGES)
	rm -f $(VENV)/.made-from-*
	touch $@

demo: $(STAMP)
	mkdir -p $(DEMO)
	$(BIN)/atonnx export examples/mlp.py:model -o $(DEMO)/mlp.onnx --verify
	$(BIN)/atonnx export examples/resnet50.py:model -o $(DEMO)/resnet50.onnx --verify
	@echo 'The models are in $(DEMO)/:'
	@ls -l $(DEMO)

test: $(STAMP)
	$(PYTEST) -m "not slow" $(ARGS)

test-all: $(STAMP)
	$(PYTEST) $(ARGS)

lint: $(STAMP)
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py $(ARGS)

docs: $(STAMP)
	$(BIN)/python docs/generate.py
	$(RUN) pytest tests/test_docs.py $(ARGS)

clean:
	rm -rf .venv .venv-torch* build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
