"""A dead letter: a faulty row as it is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from hashlib import sha256

from setl.load.deadletters.payload import (
    Content,
    content_from_text,
    content_to_text,
    mapped_by_from_text,
    row_to_json,
)
from setl.load.sink import LoadTicket
from setl.model.change import Row
from setl.model.document import DocumentForm
from setl.model.faulty import FaultyRow
from setl.model.position import version_text
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
        payload: the row as JSON text, see `setl.load.deadletters.payload`.
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
