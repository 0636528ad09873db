"""The arrows between packages hold, and the rules that say so notice when one does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from setl.channel.fields.endpoints import BUILT_IN_TARGETS
from setl.channel.fields.kafka_formats import STANDALONE
from tests.index_products import PRODUCTS

CHECKOUT = Path(__file__).parents[2]
ROOTS = (
    CHECKOUT / "setl",
    CHECKOUT / "arbiter",
    CHECKOUT / "deploy" / "setl_embedded",
    CHECKOUT / "deploy" / "setl_drills",
)
REGISTERED = [
    *(("setl/run", form.system) for form in BUILT_IN_TARGETS),
    *(("setl/systems/kafka", form.headers) for form in STANDALONE.values()),
    *(("setl/transform", form.rows) for form in STANDALONE.values()),
    *(("setl/systems/kafka", form.serializer) for form in STANDALONE.values()),
    *((f"setl/systems/{each}", "setl.systems.elasticsearch") for each in PRODUCTS[1:]),
]
"""What is known by name in a registry, by whom it may not be imported."""
LAYERED = ("setl/run", "setl/systems/mysql")
"""Packages whose own modules stand in layers, too."""


def lint(folder):
    """Check the packages in `folder` against the rules of this checkout's pyproject.toml."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    options = ("--no-cache", "--no-logo", "--config", str(CHECKOUT / "pyproject.toml"))
    return subprocess.run(
        [sys.executable, "-c", program, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(folder), str(folder / "deploy")))},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def part_of(reference):
    """The package or module below `setl.systems`, `setl.codec` or `setl.relay`."""
    return ".".join(reference.partition(":")[0].split(".")[:3])


@pytest.fixture
def skeleton(tmp_path):
    """All our packages, and the modules that rules name, with nothing in them."""
    for root in ROOTS:
        for module in root.rglob("*.py"):
            parts = module.relative_to(root.parent)
            in_rules = parts.parent.as_posix() in (*LAYERED, "setl/relay")
            if in_rules or len(parts.parts) <= 2 or parts.name == "__init__.py":
                empty = tmp_path / parts
                empty.parent.mkdir(parents=True, exist_ok=True)
                empty.touch()
    return tmp_path


def test_the_arrows_hold():
    done = lint(CHECKOUT)
    assert done.returncode == 0, done.stdout + done.stderr


def test_empty_packages_break_no_rule(skeleton):
    done = lint(skeleton)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("setl/select", "setl.load"),
        ("setl/load", "setl.select"),
        ("setl/extract", "setl.transform"),
        ("setl/transform", "setl.extract"),
        ("setl/transform", "setl.run"),
        ("setl/load", "setl.bulk"),
        ("setl/load", "arbiter"),
        ("setl/codec", "setl.systems.mysql"),
        ("setl/codec", "setl.channel"),
        ("setl/load", "setl.systems"),
        ("setl/systems/mysql", "setl.run"),
        ("setl/run", "setl.operate"),
        ("setl/run", "setl.systems.mysql"),
        ("setl/systems/mysql", "setl.systems.elasticsearch"),
        ("setl/systems/elasticsearch", "setl.systems.kafka"),
        ("setl/systems/search_index", "setl.systems.elasticsearch"),
        *((importer, part_of(each)) for importer, each in REGISTERED),
        ("setl/model", "setl.clock"),
        ("setl/model", "setl.codec"),
        ("setl/run", "setl.node"),
        ("setl/node", "setl.cli"),
        ("setl/run/relay", "setl.run.assembly"),
        ("setl/run/measured", "setl.run.stalls"),
        ("setl/run/measured", "setl.run.verification"),
        ("setl/run/spark", "setl.run.runners"),
        ("setl/run/targets", "setl.run.table_loads"),
        ("setl/run/runners", "setl.run.loads"),
        ("setl/run/loads", "setl.run.table_loads"),
        ("setl/systems/mysql/load", "setl.systems.mysql.conflicts"),
        ("setl/systems/mysql/load", "setl.systems.mysql.reading"),
        ("setl/systems/mysql/reading", "setl.systems.mysql.sink"),
        ("setl/systems/mysql/conflicts", "setl.systems.mysql.reading"),
        ("setl/systems/mysql/creation", "setl.systems.mysql.ddl"),
        ("setl/systems/mysql/ddl", "setl.systems.mysql.preflight"),
        ("setl/systems/mysql/values", "setl.systems.mysql.catalog"),
        ("setl/systems/mysql/binlog", "setl.systems.mysql.server"),
        ("arbiter", "setl.errors"),
        ("setl_embedded", "setl.errors"),
        ("setl/node", "setl_embedded"),
        ("setl/cli", "setl_drills"),
        ("arbiter", "setl_drills"),
        ("setl_embedded", "setl_drills"),
    ],
)
def test_a_forbidden_import_is_noticed(skeleton, importer, imported):
    (skeleton / importer / "intruder.py").write_text(f"import {imported}\n")
    done = lint(skeleton)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "BROKEN" in done.stdout
    assert f"{importer.replace('/', '.')}.intruder -> {imported}" in done.stdout


@pytest.mark.parametrize("container", ["setl", *LAYERED])
def test_a_new_package_has_to_be_given_its_position(skeleton, container):
    (skeleton / container / "newcomer").mkdir()
    (skeleton / container / "newcomer" / "__init__.py").touch()
    done = lint(skeleton)
    assert done.returncode == 1
    assert "newcomer" in done.stdout
