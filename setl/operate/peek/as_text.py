"""A record as lines of text for people.

    orders[0]@104  UPDATE  shop.orders  2023-11-14T22:13:32+00:00
      record 7, position 3163@78, transaction 0, MySQL 8.0.28, 345 bytes
      tags: pk_uk_info={"PRIMARY":["id"]}, thread_id=5
        id      integer  4
      * amount  decimal  5924.38 → 12.00

A changed column is marked and shows both values. Text stands in quotes, so that it cannot be
taken for NULL or ABSENT (a column that the record does not mention). What could move a
terminal's cursor is escaped. Large values are cut, and their size is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from setl.channel.names.patterns import escape
from setl.codec.dts.envelope import FILLER, Envelope
from setl.codec.sql.redaction import redacted
from setl.model.change import Value
from setl.model.schema import Kind
from setl.model.typed import TypedChange
from setl.operate.units import iso_time
from setl.systems.seen_record import SeenRecord

_TEXT_SHOWN = 160  # characters of a value
_BYTES_SHOWN = 32
_STATEMENT_SHOWN = 4000
_QUOTED = frozenset((Kind.TEXT, Kind.ENUM, Kind.SET, Kind.JSON))
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


class Line(NamedTuple):
    """One line.

    Attributes:
        text: the line.
        role: what it is: ``head``, ``detail``, ``changed``, ``plain`` or ``problem``.
    """

    text: str
    role: str


def text_lines(record: SeenRecord) -> Iterator[Line]:
    """A record's lines; those without rows, DDL or problems have one."""
    yield Line("  ".join(filter(None, _head(record))), "head")
    if record.problem:
        yield Line(f"  {_plain(record.problem)}", "problem")
        yield Line(f"  {_value(record.payload, Kind.BINARY)}", "detail")
    if record.change is None and not record.statement:
        return
    if record.envelope is not None:
        yield Line(f"  {_source(record.envelope)}, {record.size:,} bytes", "detail")
        if record.envelope.tags:
            tags = ", ".join(f"{name}={value}" for name, value in record.envelope.tags.items())
            yield Line(f"  tags: {_cut(_plain(tags), _STATEMENT_SHOWN)}", "detail")
    for name, value in record.headers:
        yield Line(f"  header {_plain(name)}: {_plain(value.decode(errors='replace'))}", "detail")
    if record.statement:
        yield Line(f"  {_cut(_plain(redacted(record.statement)), _STATEMENT_SHOWN)}", "plain")
    if record.change is not None:
        yield from _columns(record.change)


def _head(record: SeenRecord) -> Iterator[str]:
    envelope = record.envelope
    yield str(record.position)
    yield record.operation
    # As `--table` wants it: a dot inside a name has a backslash.
    yield ".".join([escape(_plain(name)) for name in (record.schema, record.table) if name])
    yield iso_time(record.timestamp)
    yield record.transaction and f"GTID {_plain(record.transaction)}"
    if record.problem or (envelope and envelope.operation == FILLER):
        yield f"{record.size:,} bytes"
    elif envelope and record.change is None and not record.statement:
        yield _source(envelope)


def _source(envelope: Envelope) -> str:
    parts = [f"record {envelope.id}"]
    if envelope.position:
        parts.append(f"position {envelope.position}")
    if envelope.transaction_id:
        parts.append(f"transaction {envelope.transaction_id}")
    parts.append(f"{envelope.source_type} {envelope.source_version}".strip())
    return _plain(", ".join(parts))


def _columns(change: TypedChange) -> Iterator[Line]:
    columns = change.schema.columns
    names = [_plain(column.name) for column in columns]
    width = max(map(len, names), default=0)
    kinds = max((len(column.kind.value) for column in columns), default=0)
    before, after = change.before, change.after
    update = before is not None and after is not None
    for index, (name, column) in enumerate(zip(names, columns, strict=True)):
        changed = update and change.changed(index)
        shown = _value(change.row.value(index), column.kind)
        if before is not None and changed:
            shown = f"{_value(before.value(index), column.kind)} → {shown}"
        elif before is not None and update and change.row.is_absent(index):
            shown = _value(before.value(index), column.kind)
        mark = "*" if changed else " "
        line = f"  {mark} {name.ljust(width)}  {column.kind.value.ljust(kinds)}  {shown}"
        yield Line(line, "changed" if changed else "plain")


def _value(value: Value, kind: Kind) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        more = f"… ({len(value):,} bytes)" if len(value) > _BYTES_SHOWN else ""
        return f"0x{value[:_BYTES_SHOWN].hex()}{more}"
    if not isinstance(value, str):
        return repr(value)
    if kind not in _QUOTED:
        return _cut(_plain(value), _TEXT_SHOWN)
    more = f"… ({len(value):,} characters)" if len(value) > _TEXT_SHOWN else ""
    written = _plain(value[:_TEXT_SHOWN]).replace("'", "\\'")
    return f"'{written}'{more}"


def _plain(text: str) -> str:
    """Text in one line without anything that a terminal would obey."""
    if text.isprintable() and "\\" not in text:
        return text
    return "".join(
        char if char.isprintable() and char != "\\" else _ESCAPES.get(char, _escape(char))
        for char in text
    )


def _escape(char: str) -> str:
    return f"\\x{ord(char):02x}" if ord(char) < 256 else f"\\u{ord(char):04x}"


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"
