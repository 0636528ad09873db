"""A dead letter: a faulty row as it is stored, and the row itself as JSON and back, without loss.

Values that JSON has are themselves: integers of any size, finite numbers, text, null. The others
are objects of one field: ``{"bytes": base64}``, ``{"float": "nan"}``, ``{"tuple": […]}``,
``{"absent": true}``. The text is ASCII, so that it also holds text that has no UTF-8 form.
"""

from __future__ import annotations

import json
import math
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from hashlib import sha256
from typing import Any, cast

from setl.errors import FatalError
from setl.load.sink import LoadTicket
from setl.model.change import ABSENT, Op, Row
from setl.model.document import DocumentForm
from setl.model.faulty import FaultyRow, RawRecord, SourceChange, TargetRow
from setl.model.position import version_text
from setl.model.schema import Column, Kind, RowSchema
from setl.model.target_name import target_name

_LONGEST = 16_000
"""Characters of an error that any store takes."""


class State(Enum):
    """What is to become of a dead letter."""

    OPEN = "open"  # somebody has to decide
    RETRY = "retry"  # the leader is to load it again
    SUPERSEDED = "superseded"  # a later change of its row was applied, or is a dead letter itself


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One faulty row, kept.

    Attributes:
        id: 16 hexadecimal digits, the same each time the row is found to be faulty.
        pipeline: ``channel/pipeline``.
        state: what is to become of it.
        target: ``schema.table`` or index that it was meant for.
        source: ``schema.table`` that it comes from, "" if not known.
        version: order in the source, see `document_version`.
        position: the position where the source goes on after it.
        operation: see `FaultyRow.operation`.
        key_hash: see `key_hash`; "" if the key is not known.
        key_values: the key's values as JSON text, None if it is not known.
        error: what happened.
        hint: what can be done.
        payload: the row as JSON text, see `content_to_text`.
        attempts: how often it was tried.
        at: when it was tried last, seconds since 1970.
        batch: number of the batch that it came with.
        epoch: leadership that tried it last.
        nid: node that tried it last.
    """

    id: str
    pipeline: str
    state: State
    target: str
    source: str
    version: int
    position: str
    operation: str
    key_hash: str
    key_values: str | None
    error: str
    hint: str
    payload: str
    attempts: int
    at: float
    batch: int
    epoch: int
    nid: str

    @property
    def content(self) -> Content:
        """The row; raises FatalError if it cannot be read."""
        return content_from_text(self.payload)

    @property
    def mapped_by(self) -> str:
        """See `FaultyRow.mapped_by`."""
        return mapped_by_from_text(self.payload)


def letter_of(row: FaultyRow, ticket: LoadTicket, at: float) -> DeadLetter:
    """A faulty row as an open dead letter of its first attempt.

    Args:
        row: the row.
        ticket: on whose behalf it was tried.
        at: now, seconds since 1970.
    """
    target = target_name(row.target)
    key, known_by = key_text(row.key), key_hash(row.key, row.document)
    names = (ticket.pipeline_key, target, str(row.version), row.operation, known_by, row.number)
    return DeadLetter(
        id=sha256(json.dumps(names).encode()).hexdigest()[:16],
        pipeline=ticket.pipeline_key,
        state=State.OPEN,
        target=target,
        source=row.source,
        version=row.version,
        position=version_text(row.version, ticket.at, ticket.files),
        operation=row.operation,
        key_hash=known_by,
        key_values=key,
        error=row.error.message[:_LONGEST],
        hint=row.error.hint[:_LONGEST],
        payload=content_to_text(row.content, row.mapped_by),
        attempts=1,
        at=at,
        batch=ticket.batch_id,
        epoch=ticket.epoch,
        nid=ticket.leadership.nid,
    )


def key_text(key: Row | None) -> str | None:
    """A key's values as JSON text."""
    return None if key is None else json.dumps(row_to_json(key))


def key_hash(key: Row | None, document: DocumentForm | None = None) -> str:
    """A short stand-in for what a target knows a row by; "" for an unknown key.

    The same for equal keys, of documents those of the same form.
    """
    text = key_text(key)
    if text is None:
        return ""
    form = "" if document is None else repr(document)
    return sha256(f"{text}{form}".encode()).hexdigest()[:32]


Content = RawRecord | SourceChange | TargetRow


def content_to_text(content: Content, mapped_by: str = "") -> str:
    """The JSON text of a faulty row's content; `content_from_text` is its inverse.

    `mapped_by`, see `FaultyRow`, stands beside it.
    """
    if isinstance(content, RawRecord):
        value: dict[str, Any] = {
            "form": "record",
            "codec": content.codec,
            "payload": _base64(content.payload),
            "context": list(map(_base64, content.context)),
            "table": content.table,
        }
    elif isinstance(content, SourceChange):
        schema = content.schema
        value = {
            "form": "change",
            "schema": schema.schema,
            "table": schema.table,
            "columns": _columns_to_json(schema.columns),
            "key": schema.key,
            "unique": schema.unique,
            "untold": schema.unlogged,
            "operation": content.op.value,
            "before": row_to_json(content.before),
            "after": row_to_json(content.after),
            "partial": content.partial,
            "number": content.number,
        }
    else:
        value = {
            "form": "row",
            "target": content.target,
            "columns": _columns_to_json(content.columns),
            "key": content.key,
            "operation": "delete" if content.delete else "upsert",
            "values": row_to_json(content.values),
            "group": content.group,
            "document": None if content.document is None else asdict(content.document),
            "untold": content.unlogged,
        }
    if mapped_by:
        value["mapped_by"] = mapped_by
    return json.dumps(value, ensure_ascii=True)


def mapped_by_from_text(text: str) -> str:
    """What was given to `content_to_text` beside the content; "" if it cannot be read."""
    try:
        return str(json.loads(text).get("mapped_by", ""))
    except (ValueError, AttributeError):
        return ""


def content_from_text(text: str) -> Content:
    """Inverse of `content_to_text`.

    Raises:
        FatalError: the text is none that `content_to_text` wrote.
    """
    try:
        return _content(json.loads(text))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FatalError(
            f"the payload of a dead letter cannot be read: {error}",
            hint="It was changed, or written by another version of setl; drop it",
        ) from error


def _content(value: dict[str, Any]) -> Content:
    if value["form"] == "record":
        context = tuple(b64decode(part) for part in value["context"])
        schema, table = value["table"]
        return RawRecord(value["codec"], b64decode(value["payload"]), context, (schema, table))
    columns = _columns_from_json(value["columns"])
    key = tuple(value["key"])
    if value["form"] == "change":
        unique = tuple(tuple(indexes) for indexes in value["unique"])
        unlogged = tuple(value.get("untold", ()))
        name = value["schema"], value["table"]
        schema = RowSchema(*name, columns, key, unique, unlogged=unlogged)
        before, after = _row_from_json(value["before"]), _row_from_json(value["after"])
        op, partial = Op(value["operation"]), value["partial"]
        return SourceChange(schema, op, before, after, partial, value["number"])
    values, delete = _row_from_json(value["values"]) or (), value["operation"] == "delete"
    space, name = value["target"]
    document = None if value["document"] is None else _form_from_json(value["document"])
    unlogged = tuple(value.get("untold", ()))
    return TargetRow(
        (space, name), columns, key, values, delete, value["group"], document, unlogged
    )


def row_to_json(row: Row | None) -> list[Any] | None:
    """A row as plain JSON values."""
    return None if row is None else list(map(_to_json, row))


def _row_from_json(values: Sequence[Any] | None) -> Row | None:
    return None if values is None else tuple(map(_from_json, values))


def _to_json(value: Any) -> Any:
    if value is ABSENT:
        return {"absent": True}
    if isinstance(value, bytes):
        return {"bytes": _base64(value)}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if isinstance(value, tuple):
        return {"tuple": list(map(_to_json, cast("Sequence[Any]", value)))}
    return value


def _from_json(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if "bytes" in value:
        return b64decode(cast("str", value["bytes"]))
    if "tuple" in value:
        return tuple(map(_from_json, cast("Sequence[Any]", value["tuple"])))
    return float(cast("str", value["float"])) if "float" in value else ABSENT


def _columns_to_json(columns: Sequence[Column]) -> list[dict[str, Any]]:
    return [_fields_to_json(column, Column("", Kind.TEXT)) for column in columns]


def _fields_to_json(value: Any, plain: Any) -> dict[str, Any]:
    """The fields that tell a column from a plain one; those that do not count are left out."""
    written: dict[str, Any] = {}
    for field in fields(value):
        item = getattr(value, field.name)
        if isinstance(item, Kind):
            written[field.name] = item.value
        elif field.compare and item != getattr(plain, field.name):
            nested = field.name == "fields"
            written[field.name] = _columns_to_json(item) if nested else item
    return written


def _columns_from_json(columns: Sequence[dict[str, Any]]) -> tuple[Column, ...]:
    return tuple(
        replace(
            Column("", Kind.TEXT),
            **{**c, "kind": Kind(c["kind"]), "fields": _columns_from_json(c.get("fields", ()))},
        )
        for c in columns
    )


def _form_from_json(value: dict[str, Any]) -> DocumentForm:
    lists = {k: tuple(cast("list[Any]", v)) for k, v in value.items() if isinstance(v, list)}
    return replace(DocumentForm.of_key(1), **{**value, **lists})


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")
