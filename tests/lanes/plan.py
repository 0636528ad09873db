"""Which lanes there are, and in which of them a test runs. No test is in none or in two.

The seconds are processor time of all that a lane starts, roughly; the longest begin first. Add them
up and divide by the cores: the whole cannot be over sooner.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tests.families import BETWEEN, Pair

_INTEGRATION = ("tests/contract", "tests/integration")

# Whole nodes, Spark clusters, ensembles: what waits for sessions and starts.
_NODES = tuple(
    f"tests/integration/test_{name}.py"
    for name in (
        "arbiter_ensemble",
        "arbiter_security",
        "arbiter_zookeeper",
        "bounds",
        "cluster",
        "cluster_environment",
        "embedded_stack",
        "jvm_memory",
        "kafka_security",
        "node_loses_spark",
        "operations",
        "processor_on_a_cluster",
        "scale_out",
        "signs",
        "zookeeper_anew",
    )
)
_PLAIN_CONTRACTS = ("tests/contract/test_arbiter.py", "tests/contract/test_relay_log.py")


@dataclass(frozen=True)
class Lane:
    """A process that runs some of the tests.

    Attributes:
        name: what people and `lane_of` call it.
        seconds: processor time that it takes, roughly.
        paths: files and folders in which its tests are.
    """

    name: str
    seconds: int
    paths: tuple[str, ...]


LANES = (
    Lane("drills with relays", 450, ("tests/drills",)),
    Lane("drills", 650, ("tests/drills",)),
    Lane("drills on mysql", 240, ("tests/drills",)),
    Lane("drills on a mixed pair", 130, ("tests/drills",)),
    Lane("nodes", 550, (*_NODES, *_PLAIN_CONTRACTS)),
    Lane("mariadb", 650, _INTEGRATION),
    Lane("mysql", 700, _INTEGRATION),
    Lane("bench", 100, ("tests/bench/test_bench.py",)),
    Lane("unit", 150, ("tests/unit",)),
)

QUICK = ("unit",)
"""The lanes that need no server; with the checks, they tell most of what can be told in minutes."""


@dataclass(frozen=True)
class Check:
    """A program that has nothing to say if all is well.

    Attributes:
        name: what people call it.
        command: the program and its arguments.
    """

    name: str
    command: tuple[str, ...]


CHECKS = (
    Check("lint", ("ruff", "check", ".")),
    Check("format", ("ruff", "format", "--check", ".")),
    Check("import rules", ("lint-imports", "--no-logo", "--no-cache")),
)
"""Are over in seconds, so that they come before everything else."""

SLOW_CHECKS = (Check("types", ("pyright", "--pythonpath", sys.executable)),)
"""Run beside the lanes."""


def lane_of(path: str, pair: Pair | None = None, drill: str = "", sites: str = "mariadb") -> str:
    """The lane of a test.

    Args:
        path: its file, relative to the checkout, with ``/``.
        pair: the database servers it runs on, None for none.
        drill: the drill it rehearses, "" for none.
        sites: the sites of that drill, a key of `setl_drills.world.SITES`.
    """
    for folder, lane in (("tests/unit/", "unit"), ("tests/bench/", "bench")):
        if path.startswith(folder):
            return lane
    if path.startswith("tests/drills/"):
        if sites != "mariadb":
            return {"mysql": "drills on mysql", "mixed": "drills on a mixed pair"}[sites]
        return "drills with relays" if drill and _needs_kafka(drill) else "drills"
    if path in _NODES or path in _PLAIN_CONTRACTS:
        return "nodes"
    return "mysql" if pair in (Pair.MYSQL, *BETWEEN) else "mariadb"


def _needs_kafka(drill: str) -> bool:
    # Only here, for it brings half of setl with it, which most lanes do without.
    from setl_drills.catalogue import CATALOGUE

    return CATALOGUE[drill].needs.kafka


EXPECTED_SKIPS: tuple[tuple[str, str], ...] = ()
"""Beginnings of test names with the reason for which they may be skipped; others fail the run."""


def is_expected_skip(nodeid: str) -> bool:
    """Whether a test may be skipped without failing the run."""
    return any(nodeid.startswith(start) for start, _ in EXPECTED_SKIPS)
