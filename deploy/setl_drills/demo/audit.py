"""An audit of a site's binlog: did anything come back to where it was written?

Independent of setl's own counting; see `setl_drills.checkers.count_echoes`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from setl.model.position import BinlogPosition
from setl_drills.binlog import binlog_begin, read_transactions
from setl_drills.checkers import count_echoes
from setl_drills.demo.shop import SCHEMA
from setl_embedded import DatabaseServer


@dataclass
class Audit:
    """What a site's binlog says.

    Attributes:
        echoes: row changes that came back.
        by_table: all row changes, by table.
    """

    echoes: int = 0
    by_table: Counter[str] = field(default_factory=Counter)


def audit(server: DatabaseServer, site: str, end: BinlogPosition) -> Audit:
    """Read the whole binlog of a site up to `end`."""
    result = Audit()
    for transaction in read_transactions(server, SCHEMA, binlog_begin(server), end):
        result.echoes += count_echoes([transaction], site)
        for (table, _), count in transaction.rows.items():
            result.by_table[table] += count
    return result
