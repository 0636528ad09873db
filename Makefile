# Short names for what developers run most. Each target is one command of deploy/ or of the environment.
VENV ?= .venv

.PHONY: help install quick test lint format docs demo

help:  ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

install:  ## install everything that tests and linters need (apt-get needs root)
	deploy/install dev

quick:  ## lint, types, import rules and unit tests; needs no servers and no root
	deploy/test quick

test:  ## all tests, with real servers
	deploy/test

lint:  ## lint, formatting, types and import rules
	PATH=$(CURDIR)/$(VENV)/bin:$$PATH pre-commit run --all-files

format:  ## format the code
	$(VENV)/bin/ruff check --fix .
	$(VENV)/bin/ruff format .

docs:  ## serve the documentation at http://127.0.0.1:8000
	$(VENV)/bin/python -m mkdocs serve -f docs/mkdocs.yml

demo:  ## start a cluster with real servers, kill its leader, compare both sides
	deploy/quickstart
