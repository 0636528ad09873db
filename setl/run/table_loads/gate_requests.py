"""What rows of the free gate ask for, as requests to load them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setl.extract.free_gate import GateRow
from setl.model.change import Row
from setl.model.load_request import FREE_GATE, LoadRequest, in_pieces


def gate_requests(rows: Sequence[GateRow], now: float) -> Iterator[LoadRequest]:
    """Requests for these rows, each of one table.

    A row is sent as it is when the request is carried out, and so instead of the stream where
    that is. So one that is asked for twice is sent once, and the order among rows says nothing.

    Args:
        rows: of tables that are mapped.
        now: seconds since 1970.
    """
    by_table: dict[str, dict[Row, None]] = {}
    for row in rows:
        by_table.setdefault(row.table, {})[row.key] = None
    for table, keys in by_table.items():
        for piece in in_pieces(keys):
            yield LoadRequest(
                tables=(table,),
                keys=tuple(piece),
                reason=FREE_GATE,
                by="retl.retl_buffer",
                sent=now,
            )
