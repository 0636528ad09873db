"""Which tests run on which database servers: MariaDB, MySQL, or one of each.

A test that asks for ``site_a``, ``site_b``, or anything made of them, runs once for each
pair of servers that `pairs_of` names. This is the one place that says which.

- Whatever reads a binlog, writes rows, fences, compares, checks or creates tables can differ
  between the families, so it runs on both: that is the rule.
- What a test file is about may be the same on both. `ONCE` lists those files, each with the
  reason. They run on MariaDB.
- `MIXED` lists the files that also run between the families, in either direction.
- A single test that is about one family says so and why:
  ``@pytest.mark.family("mariadb", why="MySQL has no sequences")``; one of a file in `MIXED` that
  says nothing new between the families: ``@pytest.mark.not_mixed(why="…")``.

`VARIABLE` names two servers that somebody else runs; then all tests run on those, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

VARIABLE = "SETL_TEST_MYSQL"


class Pair(Enum):
    """Two database servers by family: ``a`` of site A, ``b`` of site B."""

    MARIADB = ("mariadb", "mariadb")
    MYSQL = ("mysql", "mysql")
    MYSQL_TO_MARIADB = ("mysql", "mariadb")
    MARIADB_TO_MYSQL = ("mariadb", "mysql")
    GIVEN = ("given", "given")

    def __init__(self, a: str, b: str) -> None:
        self.a = a
        self.b = b

    @property
    def families(self) -> frozenset[str]:
        """The families in it; empty for servers of which nobody knows the family."""
        return frozenset() if self is Pair.GIVEN else frozenset((self.a, self.b))

    def __str__(self) -> str:
        """What stands in a test's name."""
        return self.name.lower().replace("_", "-")


SAME = (Pair.MARIADB, Pair.MYSQL)
BETWEEN = (Pair.MYSQL_TO_MARIADB, Pair.MARIADB_TO_MYSQL)

_I = "tests/integration/"
ONCE: Mapping[str, str] = {
    "tests/bench/": "the benchmark measures MariaDB; this is about its own arithmetic",
    f"{_I}spark/test_bounds.py": "how much memory a queue takes; the server only fills it",
    f"{_I}nodes/test_cluster.py": "who leads, and what a standby does; nodes and ZooKeeper",
    f"{_I}spark/test_cluster_environment.py": "what Spark's workers find on a cluster",
    f"{_I}nodes/test_console.py": "pages of a browser, over what nodes say",
    f"{_I}nodes/test_cutover.py": "the steps; test_write_stop and test_wait are about servers",
    f"{_I}spark/test_fair_share.py": "Spark's scheduler",
    f"{_I}search/test_index_creation.py": "Elasticsearch as the target; rows are the same by then",
    f"{_I}search/test_index_ranges.py": "how indexes are searched; sources are read as ever",
    f"{_I}search/test_index_replaced.py": "Elasticsearch as the target; rows are the same by then",
    f"{_I}nodes/test_many.py": "who leads what; test_cluster has the rows",
    f"{_I}nodes/test_monitoring.py": "what Prometheus makes of metrics",
    f"{_I}nodes/test_node_loses_spark.py": "the end of a JVM",
    f"{_I}nodes/test_operations.py": "commands and what they say, over ZooKeeper",
    f"{_I}search/test_pipeline_documents.py": "documents; rows are the same by then",
    f"{_I}search/test_pipeline_search.py": "Elasticsearch as the target; rows are the same by then",
    f"{_I}spark/test_processors.py": "the user's own code, on rows that are the same by then",
    f"{_I}spark/test_scale_out.py": "Spark clusters",
    f"{_I}nodes/test_signs.py": "what commands, metrics and probes say",
    f"{_I}spark/test_prepared_queries.py": "Spark's jobs",
    f"{_I}targets/test_third_target.py": "a target that is files",
}
"""File or folder → why it does not run on both families."""

BETWEEN_ALONE = frozenset({f"{_I}types/test_mixed_pair.py"})
"""Files about what happens between the families; they run there and nowhere else."""

MIXED = frozenset(
    {
        f"{_I}types/test_checksums.py",
        f"{_I}targets/test_keyless_tables.py",
        f"{_I}targets/test_target_creation.py",
        f"{_I}types/test_types_mysql.py",
    }
)
"""Files that also run between the families."""


def pairs_of(path: str, given: bool = False) -> tuple[Pair, ...]:
    """The pairs of servers that the tests of a file run on.

    Args:
        path: the file, relative to the checkout, with ``/``.
        given: whether somebody has given servers.
    """
    if given:
        return (Pair.GIVEN,)
    if path in BETWEEN_ALONE:
        return BETWEEN
    if any(path.startswith(known) for known in ONCE):
        return (Pair.MARIADB,)
    return SAME + BETWEEN if path in MIXED else SAME


def suits(pair: Pair, only: Iterable[str], *, one: bool = False) -> bool:
    """Whether a test that is about some families alone says anything on a pair of servers.

    Args:
        pair: the servers.
        only: the families; none for all.
        one: whether both servers have to be of one family.
    """
    wanted = frozenset(only)
    return (not wanted or pair.families <= wanted) and not (one and len(pair.families) > 1)


def pair_of(item: Any) -> Pair | None:
    """The pair of servers that a test of pytest's runs on, None if on none."""
    values = getattr(getattr(item, "callspec", None), "params", {}).values()
    return next((value for value in values if isinstance(value, Pair)), None)
