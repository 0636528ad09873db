"""How far a load of tables is, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from setl.counting import count

_SHOWN_BYTES: Final = 50_000


def load_sentence(load: Mapping[str, Any]) -> str:
    """What the leader tells of a load, in one line.

    Args:
        load: `setl.run.measured.figures.TableLoadFigures` as JSON.
    """
    state, rows, expected = load["state"], load["rows"], load.get("rows_expected")
    done = count(rows, "row")
    if state == "catching up":
        return f"{done}, all that there were; the stream has to come to where they were read"
    if state != "reading":
        return f"{done}, {state}"
    if expected:
        done = _part(rows, expected)
    parts = [done, f"{load['rows_per_second']:,.0f} rows/s"]
    # Less would be shown as 0.0: mostly the server has not counted yet how large its tables are.
    if (load.get("bytes_per_second") or 0) >= _SHOWN_BYTES:
        parts.append(f"{load['bytes_per_second'] / 1e6:,.1f} MB/s")
    if load.get("seconds_left"):
        parts.append(f"{_duration(load['seconds_left'])} left")
    if load.get("table"):
        left = load.get("tables_left")
        # The estimate of one table may be less than it has; that of all is reported as well.
        here, whole = load.get("table_rows", 0), load.get("table_rows_expected")
        inside = f": {_part(here, max(here, whole))}" if whole else ""
        parts.append(f"now {load['table']}{inside}")
        parts += [] if left is None else [count(left, "table left", "tables left")]
    if load.get("throttle_count"):
        parts.append(f"was throttled {count(load['throttle_count'], 'time')}")
    if load.get("waits_for"):
        parts.append(f"waits: {load['waits_for']}")
    return ", ".join(parts)


def _part(rows: int, expected: int) -> str:
    return f"{rows:,} of about {count(expected, 'row')} ({100 * rows // expected} %)"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
