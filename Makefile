# Every target that needs the environment makes it first. `make` alone lists the targets.
VENV ?= .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
IMAGE ?= kernel-env:latest
JOBS ?= 2

.DEFAULT_GOAL := help
.PHONY: help install demo test test-gpu bench check format validate lock stage image image-check clean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

install: $(STAMP) ## Make the virtual environment .venv and install everything into it

$(STAMP): pyproject.toml constraints.txt scripts/venv.sh
	scripts/venv.sh $(VENV)
	@touch $@

demo: $(STAMP) ## Start a server on a free port, run the smoke client against it, stop the server
	$(PY) scripts/with_server.py -- $(PY) examples/client_smoke.py --url {url}

test: $(STAMP) ## Run the CPU test suite, JOBS tests at a time
	$(PY) -m pytest -n $(JOBS) --dist worksteal

test-gpu: $(STAMP) ## Run the tests that need a CUDA device
	$(PY) -m pytest -m gpu

check: $(STAMP) ## Lint, format check, types, import directions
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(PY) -m pytest -q tests/test_layers.py

format: $(STAMP) ## Apply the formatter and the safe fixes of the linter
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

bench: $(STAMP) ## Measure on a GPU, beside the KernelBench checkout in KERNEL_ENV_TASKS, and write docs/benchmarks.md
	PY=$(PY) scripts/bench.sh

validate: $(STAMP) ## Run `openenv validate` on the tree and on a running server
	$(VENV)/bin/uv lock --quiet
	$(VENV)/bin/openenv validate .
	$(PY) scripts/with_server.py -- $(VENV)/bin/openenv validate --url {url}

lock: ## Renew constraints.txt
	scripts/lock.sh

stage: $(STAMP) ## Stage the tree into .stage for `openenv push`
	$(PY) scripts/stage.py .stage

image: ## Build the container image with Docker
	docker build --tag $(IMAGE) .

image-check: ## Build the image without Docker and run the smoke client against it (root, Debian, slow)
	scripts/image_check.sh

clean: ## Remove everything the other targets made
	rm -rf $(VENV) .stage .image build dist *.egg-info uv.lock task_prompt.txt .mypy_cache .ruff_cache .pytest_cache .hypothesis
