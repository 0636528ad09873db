"""Which lanes there are, and in which of them a test runs. No test is in none or in two.

The longest begin first, and the whole cannot be over sooner than one of them. A lane waits two
thirds of its time (for sessions to end, programs to start, disks), so two run on each core; more
make tests that wait for each other run into their limits. What a lane has servers of its own for
costs half a minute of processor time.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from tests.families import BETWEEN, Pair

_INTEGRATION = ("tests/contract", "tests/integration")


def _integration(*names: str) -> tuple[str, ...]:
    rooms = (name.partition("/") for name in names)
    return tuple(f"tests/integration/{room}/test_{name}.py" for room, _, name in rooms)


# Spark clusters, and what fills memory.
_CLUSTERS = _integration(
    "spark/bounds",
    "spark/cluster_environment",
    "spark/jvm_memory",
    "spark/scale_out",
    "spark/spark_process",
)
# Whole nodes: what waits for sessions and starts.
_NODES = _integration(
    "nodes/alarm_servers",
    "nodes/cluster",
    "nodes/console",
    "nodes/cutover",
    "nodes/embedded_stack",
    "nodes/many",
    "nodes/monitoring",
    "nodes/node_loses_spark",
    "nodes/operations",
    "nodes/signs",
)
# ZooKeeper and Kafka themselves.
_SERVICES = (
    *_integration(
        "commands/applying",
        "zookeeper/arbiter_ensemble",
        "zookeeper/arbiter_security",
        "zookeeper/arbiter_zookeeper",
        "kafka/kafka_security",
        "commands/shell_completion",
    ),
    "tests/contract/test_arbiter.py",
    "tests/contract/test_relay_log.py",
)
# Tables, types and keys, on each family; with all that needs a pair of two.
_TABLES = _integration(
    "types/checksums",
    "targets/keyless_tables",
    "types/mixed_pair",
    "search/nested_documents",
    "targets/pipeline_mysql",
    "commands/preflight",
    "commands/preflight_indexes",
    "commands/preflight_keys",
    "two_sites/same_rows",
    "two_sites/same_rows_commands",
    "schema_changes/schema_changes",
    "schema_changes/schema_changes_elsewhere",
    "schema_changes/schema_changes_fenced",
    "schema_changes/schema_changes_rows",
    "table_loads/table_load",
    "types/types_mysql",
    "types/types_search",
)
_ALONE = {
    path: lane
    for lane, paths in (("clusters", _CLUSTERS), ("nodes", _NODES), ("services", _SERVICES))
    for path in paths
}
# A third of them each, by time; "unit" is the rest.
_UNIT = {
    "unit beside": (
        "tests/security",
        *(f"tests/unit/{folder}" for folder in ("cli", "lanes", "node")),
    ),
    "unit of runs": tuple(f"tests/unit/{folder}" for folder in ("arbiter", "protocol", "run")),
}


@dataclass(frozen=True)
class Lane:
    """A process that runs some of the tests.

    Attributes:
        name: what people and `lane_of` call it.
        seconds: that it takes beside others, roughly.
        paths: files and folders in which its tests are.
        without: those in them that have none of its tests, which need not be looked at.
    """

    name: str
    seconds: int
    paths: tuple[str, ...]
    without: tuple[str, ...] = ()


_ELSEWHERE = (*_ALONE, *_TABLES)


LANES = (
    Lane("mariadb", 1220, _INTEGRATION, _ELSEWHERE),
    Lane("mysql", 1080, _INTEGRATION, _ELSEWHERE),
    Lane("tables on mysql", 680, _TABLES),
    Lane("nodes", 610, _NODES),
    Lane("drills", 680, ("tests/drills",)),
    Lane("tables on mariadb", 320, _TABLES),
    Lane("clusters", 320, _CLUSTERS),
    Lane("services", 280, _SERVICES),
    Lane("unit", 220, ("tests/unit",), tuple(path for paths in _UNIT.values() for path in paths)),
    *(Lane(name, 100, paths) for name, paths in _UNIT.items()),
    Lane("drills on mysql", 130, ("tests/drills",)),
    Lane("bench", 100, ("tests/bench/test_bench.py",)),
)

QUICK = ("unit", *_UNIT)
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


def lane_of(path: str, pair: Pair | None = None, sites: str = "mariadb") -> str:
    """The lane of a test.

    Args:
        path: its file, relative to the checkout, with ``/``.
        pair: the database servers it runs on, None for none.
        sites: the sites of the drill it rehearses, a key of `setl_drills.world.SITES`.
    """
    for lane, folders in _UNIT.items():
        if any(path.startswith(f"{folder}/") for folder in folders):
            return lane
    if path.startswith("tests/unit/"):
        return "unit"
    if path.startswith("tests/bench/"):
        return "bench"
    if path.startswith("tests/drills/"):
        return "drills" if sites == "mariadb" else "drills on mysql"
    if path in _ALONE:
        return _ALONE[path]
    family = "mysql" if pair in (Pair.MYSQL, *BETWEEN) else "mariadb"
    return f"tables on {family}" if path in _TABLES else family


EXPECTED_SKIPS: tuple[tuple[str, str], ...] = ()
"""Beginnings of test names with the reason for which they may be skipped; others fail the run."""


def is_expected_skip(nodeid: str) -> bool:
    """Whether a test may be skipped without failing the run."""
    return any(nodeid.startswith(start) for start, _ in EXPECTED_SKIPS)
