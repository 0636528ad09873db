"""What GitHub and `make` run is in this checkout."""

import os
import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / ".github").rglob("*.yml"))
MADE = dict(re.findall(r"^([a-z]+):[^\n]*\n\t(.+)", (ROOT / "Makefile").read_text(), re.MULTILINE))


def steps():
    for file in ROOT.glob(".github/workflows/*.yml"):
        for name, job in yaml.safe_load(file.read_text())["jobs"].items():
            for step in job["steps"]:
                if "run" in step:
                    environment = {**job.get("env", {}), **step.get("env", {})}
                    yield pytest.param(step["run"], environment, id=f"{file.stem}-{name}")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_for_github_are_yaml(file):
    assert yaml.safe_load(file.read_text())


@pytest.mark.parametrize(
    ("command", "environment"),
    [*steps(), *(pytest.param(command, {}, id=f"make {name}") for name, command in MADE.items())],
)
def test_what_is_run_is_there(command, environment):
    for target in re.findall(r"\bmake ([a-z]+)", command):
        assert target in MADE
    for program in re.findall(r"(?:^|[\s;&])(deploy/\w+)", command):
        assert os.access(ROOT / program, os.X_OK), program
    for path in re.findall(r"(?<![\w/])(?:tests|docs)/[\w/.]+", command):
        assert (ROOT / path).exists(), path
    for name in re.findall(r"\$\{?([A-Z_]+)", command):
        assert name in {**os.environ, **environment}, name


def test_what_is_installed_can_be():
    known = set(re.findall(r"^  ([\w. |-]+)\) extras", (ROOT / "deploy/install").read_text(), re.M))
    known = {word for line in known for word in line.split(" | ")}
    for file in ROOT.glob(".github/workflows/*.yml"):
        text = file.read_text()
        (named,) = re.findall(r"server: \[(.*)\]", text)
        assert {*re.findall(r"deploy/install (\w[\w.-]*)", text), *named.split(", ")} <= known
