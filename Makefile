# From a fresh checkout: `make setup`, then `make demo`, `make up` or `make test`.
# It needs python3 (3.11 or later) with venv, make, and a package index that pip can reach: as pip.conf and PIP_* say.

PYTHON ?= python3
BIN := .venv/bin
# uv by pip's configuration (index, certificates, proxy), or pip where uv cannot
INSTALL := $(BIN)/python tools/install.py
SETUP := .venv/.complete
SPARK := .venv/.spark
RELEASE := .venv/.release
SITE := .venv/.site
QUICK_ENOUGH := not slow and not clients and not interop and not stories and not spark and not interpreters and not ui and not docs
DEFAULT_TESTS := not long and $(QUICK_ENOUGH)

# Images for containers set it. Each of the thousands of processes of a run would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup spark-setup up demo test long slow nightly check coverage format bench proof clients interop stories spark interpreters digests lock wheel release web ui weblab weblab-serve site tutorial report clean

help:
	@echo "make setup    install everything into .venv (again only when a lock has changed)"
	@echo "make demo     a cluster, 10,000 records, a broker killed, nothing lost; it ends by itself"
	@echo "make up       a cluster of three brokers on 127.0.0.1:9092, until Ctrl-C"
	@echo "make test     the tests that need nothing but .venv"
	@echo "make long     more of them, each of ten seconds or longer"
	@echo "make slow     those that repeat or search: hours (needs Spark)"
	@echo "make nightly  make slow, then all others on a machine that is kept busy, three times over: hours"
	@echo "make clients  real client libraries against real processes"
	@echo "make interop  Apache Kafka's own classes on our files (needs Java 17 and Maven)"
	@echo "make stories  KIP-966 on live clusters, as docs/stories.md tells it (STORIES=rewrite writes down what happened)"
	@echo "make spark-setup"
	@echo "              PySpark into .venv as well (500 MB, no Java needed)"
	@echo "make spark    the same, and the pipeline's tests"
	@echo "make interpreters"
	@echo "              the simulator's digests under other Pythons and under WebAssembly (skips what is not there)"
	@echo "make digests  the simulator's digests written down anew, after a change that is meant to change them"
	@echo "make check    lint, types, import rules, dead code"
	@echo "make coverage"
	@echo "              the default tests once more, and bench/results/coverage.md: lines and branches that they run"
	@echo "make bench    the benchmark"
	@echo "               (clients, interop, stories, spark and test take TESTS=path to run only some)"
	@echo "make proof    what others say of it, on one page: twenty minutes (needs Java and Maven)"
	@echo "make web      the page of tanist ui, from web/ (needs Node.js 20 and npm; the built page is in git)"
	@echo "make weblab   the lab in the browser, as a static folder: build/weblab (needs Node.js 20 and npm)"
	@echo "make weblab-serve"
	@echo "              the same, served on http://127.0.0.1:8000/ (PORT=...)"
	@echo "make ui       the live view in Chromium (says what is missing where it cannot be driven)"
	@echo "make wheel    dist/*.whl, installed and run in an empty environment"
	@echo "make release  wheel and sdist, checked and tried under each Python; nothing is uploaded (TRY='--extra none' tries less)"
	@echo "make tutorial"
	@echo "              the commands of docs/tutorial.md, run and compared"
	@echo "make report   docs/simulator-report.md: fresh seeds, and each rule broken (REPORT='--draw 50' plays fewer)"
	@echo "make site     the pages of docs/ as a static site in build/site/html"

setup: $(SETUP)

$(SETUP): requirements/dev.lock requirements/uv.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "tanist needs Python 3.11 or later; this is `$(PYTHON) --version`: make setup PYTHON=python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) --require-hashes -r requirements/dev.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

up: setup
	$(BIN)/tanist up

demo: setup
	$(BIN)/tanist demo

# More processes than two cores: a third of their time they wait for nodes.
test: setup
	@echo "$(or $(TESTS),about 12 thousand tests: about ten minutes on two idle cores and longer on busy ones)"
	$(BIN)/python -m pytest -n 3 --dist loadfile -m "$(DEFAULT_TESTS)" $(TESTS)

long: setup
	$(BIN)/python -m pytest -n 2 -m "long and $(QUICK_ENOUGH)" $(or $(TESTS),$(shell grep -rl "mark\.long" tests --include="*.py"))

# Tests that are part of no other command: long searches, and Spark's that repeat what `make spark` has tried.
slow: $(SPARK)
	$(BIN)/python -m pytest -n 2 --dist loadfile \
		-m "slow and not clients and not interop and not interpreters and not stories and not ui" $(TESTS)

nightly: setup
	$(BIN)/python tools/nightly.py $(NIGHTLY)

check: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture
	$(BIN)/vulture src/tanist tools/unused_allowed.py

# The table is written whether or not a test has failed.
coverage: setup
	-$(BIN)/python tools/measure_coverage.py run -m "$(QUICK_ENOUGH)" $(TESTS)
	$(BIN)/python tools/measure_coverage.py report

format: setup
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: setup
	$(BIN)/python -m bench

proof: setup
	$(BIN)/python -m tools.proof

clients: setup
	$(BIN)/python -m pytest -m clients $(or $(TESTS),tests/clients tests/testing)

interop: setup
	$(BIN)/python -m pytest -m interop $(or $(TESTS),tests/interop)

stories: setup
	$(BIN)/python -m pytest -n 2 -m "stories and not slow" $(or $(TESTS),tests/stories)

spark-setup: $(SPARK)

spark: $(SPARK)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "spark and not slow" $(or $(TESTS),tests/spark)

interpreters: setup
	$(BIN)/python -m pytest -m interpreters $(or $(TESTS),tests/interpreters)

digests: setup
	DIGESTS=rewrite $(BIN)/python -m pytest tests/interpreters/test_digests.py
	git --no-pager diff --stat tests/interpreters/digests.txt

$(SPARK): $(SETUP) requirements/spark.lock
	$(INSTALL) --require-hashes -r requirements/spark.lock
	@touch $@

web: web/node_modules/.package-lock.json
	cd web && npm run --silent check
	cd web && npm run --silent build

weblab: setup web/node_modules/.package-lock.json
	cd web && npm run --silent check
	cd web && npm run --silent build-lab
	$(BIN)/python tools/weblab.py build/weblab web/node_modules/pyodide

weblab-serve: weblab
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/weblab $(or $(PORT),8000)

# A line where it cannot be tried: no Node.js, no Chromium.
ui: setup
	@! command -v npm > /dev/null || test -d web/node_modules || (cd web && npm ci --no-fund --no-audit --loglevel=error) || true
	@missing=`$(BIN)/python -c 'from tests.web.browser import missing; print(missing() or "")'`; \
		if [ -n "$$missing" ]; then echo "the live view is not tried: $$missing"; \
		else $(BIN)/python -m pytest -m "ui and not slow" $(or $(TESTS),tests/web); fi

web/node_modules/.package-lock.json: web/package-lock.json
	cd web && npm ci --no-fund --no-audit

wheel: setup
	rm -rf dist build/wheel-venv
	$(BIN)/uv build --quiet --wheel --no-build-isolation --python $(BIN)/python
	$(PYTHON) -m venv build/wheel-venv
	$(INSTALL) --python build/wheel-venv/bin/python --require-hashes -r requirements/runtime.lock
	$(INSTALL) --python build/wheel-venv/bin/python --no-deps dist/*.whl
	build/wheel-venv/bin/tanist --version
	build/wheel-venv/bin/tanist demo

release: $(RELEASE)
	$(BIN)/python tools/release.py $(TRY)

$(RELEASE): $(SETUP) requirements/release.lock
	$(INSTALL) --require-hashes -r requirements/release.lock
	@touch $@

report: setup
	$(BIN)/tanist lab report $(REPORT) --out build/report
	sed 's,(report.svg),(pictures/simulator-report.svg),' build/report/report.md > docs/simulator-report.md
	cp build/report/report.svg docs/pictures/simulator-report.svg

tutorial: setup
	$(BIN)/python -m pytest -m docs tests/docs

site: $(SITE)
	$(BIN)/python -m tools.site

$(SITE): $(SETUP) requirements/site.lock
	$(INSTALL) --require-hashes -r requirements/site.lock
	@touch $@

# --no-emit-index-url and no header: a lock must not say where it was made.
lock: setup
	cd requirements && $(abspath $(BIN)/uv) pip compile $(LOCK) --extra dev -o dev.lock ../pyproject.toml build.in
	cd requirements && $(abspath $(BIN)/uv) pip compile $(LOCK) --extra spark -c dev.lock -o spark.lock ../pyproject.toml
	cd requirements && $(abspath $(BIN)/uv) pip compile $(LOCK) --group ../pyproject.toml:release -c dev.lock -o release.lock
	cd requirements && $(abspath $(BIN)/uv) pip compile $(LOCK) --group ../pyproject.toml:site -c dev.lock -o site.lock
	cd requirements && $(abspath $(BIN)/uv) pip compile $(LOCK) -o runtime.lock ../pyproject.toml
	cd requirements && $(abspath $(BIN)/uv) pip compile $(LOCK) -o uv.lock uv.in
LOCK := --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
