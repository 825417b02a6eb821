# `make demo` and `make test` do everything on a fresh machine with Python, pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help demo test fuzz soak check bench format clean
help:
	@echo "make demo    install, then the main job on the embedded simulator, with pictures"
	@echo "make test    install, then the whole test suite"
	@echo "make fuzz    100,000 random peers against both ends of the wire: minutes"
	@echo "make soak    100 real trials among faults and killed controllers: ten minutes or more"
	@echo "make check   ruff, mypy --strict on src, import directions"
	@echo "make bench   the main benchmarks beside their peers, which get environments of their own: an hour"
	@echo "make format  rewrite the code in the project's format"

# Reinstalls only when the dependencies changed; the package itself is editable.
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: $(STAMP)
	$(BIN)/python -m rl_training demo

test: $(STAMP)
	$(BIN)/python -m pytest tests -q

fuzz: $(STAMP)
	$(BIN)/python -m tests.protocol.fuzz

soak: $(STAMP)
	$(BIN)/python -m tests.autoresearch.soak

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_import_directions.py -q

bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[bench]'
	sh benchmarks/algorithms/peers.sh $(PYTHON)
	PYTHON=$(PYTHON) sh benchmarks/search/peers.sh
	$(BIN)/python -m rl_training bench sim
	$(BIN)/python -m rl_training bench wire
	$(BIN)/python -m rl_training bench algorithms speed roofline returns
	$(BIN)/python -m rl_training bench train --agents ppo,classic --seeds 3
	$(BIN)/python -m rl_training bench search --seeds 3

format: $(STAMP)
	$(BIN)/ruff check --fix --exit-zero .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache demo-out
