PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: site test serve lint clean

site: $(READY)  ## Execute everything and build the site into site/
	$(BIN)/python -m pytest -q -m clause -n 2 --dist loadfile
	$(BIN)/mkdocs build --strict

test: $(READY)  ## The whole suite
	$(BIN)/python -m pytest -n 2 --dist loadfile

serve: $(READY)  ## The site with live reload
	$(BIN)/mkdocs serve

lint: $(READY)  ## Style, types, the clause lock
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/memspec lock --check

clean:  ## Everything that can be made again
	rm -rf .cache .hypothesis .mypy_cache .pytest_cache .ruff_cache .venv dist site

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@
