"""What becomes of dead letters when a sink writes: added, superseded, or removed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from setl.counting import count
from setl.errors import DataError, FatalError
from setl.load.deadletters.dead_letter import DeadLetter, State, key_hash, letter_of
from setl.load.deadletters.store import DeadLetterStore
from setl.load.sink import LoadTicket
from setl.model.change import Row, TargetChanges
from setl.model.faulty import FaultyRow, TargetRow
from setl.model.loaded import Loaded
from setl.model.target_name import target_name


class DeadLetterUpdate(NamedTuple):
    """The dead letters that one transaction updates beside the changes it writes.

    Attributes:
        written: changes that may supersede dead letters.
        faulty: rows that were found to be faulty before.
        again: ids of the dead letters that they come from, which come behind what was written
            after them.
    """

    written: Sequence[TargetChanges]
    faulty: Sequence[FaultyRow] = ()
    again: Collection[str] = ()


class Faults:
    """Collects the rows that a call to a sink finds to be faulty.

    Without dead letters the first one ends the call.
    """

    def __init__(self, rows: Sequence[FaultyRow], most: int) -> None:
        """Begin with those that were found before.

        Args:
            rows: found while transforming.
            most: see `dead_letter_limit` in the channel file; 0 for a pipeline that stops.
        """
        self._rows = {_name(row): row for row in rows}
        self._most = most

    @property
    def rows(self) -> list[FaultyRow]:
        """What was collected."""
        return list(self._rows.values())

    def upsert(self, change: TargetChanges, number: int, error: DataError) -> None:
        """A row of `change.upserts` is refused; raises the error if that ends the call."""
        versions, values = change.upsert_versions, change.upserts[number]
        self._take(change, values, versions[number] if versions else 0, error, delete=False)

    def delete(self, change: TargetChanges, number: int, error: DataError) -> None:
        """A key of `change.deletes` is refused; raises the error if that ends the call."""
        versions, values = change.delete_versions, change.deletes[number]
        self._take(change, values, versions[number] if versions else 0, error, delete=True)

    def upserts(self, change: TargetChanges) -> Callable[[int, DataError], None]:
        """`upsert` for one change, as `setl.bisection.bisect_faults` takes it."""
        return lambda number, error: self.upsert(change, number, error)

    def deletes(self, change: TargetChanges) -> Callable[[int, DataError], None]:
        """`delete` for one change, likewise."""
        return lambda number, error: self.delete(change, number, error)

    def _take(
        self, change: TargetChanges, values: Row, version: int, error: DataError, *, delete: bool
    ) -> None:
        if not self._most:
            raise error.at(version=version or None)
        content = TargetRow(
            change.target,
            change.columns,
            change.key,
            values,
            delete,
            change.group,
            change.document,
            change.unlogged,
        )
        row = FaultyRow(
            change.target,
            change.source,
            version,
            content,
            error,
            key=values if delete else tuple(values[i] for i in change.key),
            key_columns=tuple(change.columns[i] for i in change.key),
            document=change.document,
            mapped_by=change.mapped_by,
        )
        self._rows[_name(row)] = row
        if len(self._rows) > self._most:
            # A mass failure is found out here, not after bisecting everything.
            raise too_many(len(self._rows), self._most, error)


def update_letters(
    store: DeadLetterStore,
    ticket: LoadTicket,
    written: Sequence[TargetChanges],
    faulty: Sequence[FaultyRow],
    *,
    most: int,
    now: float,
    again: Collection[str] = (),
) -> list[DeadLetter]:
    """Bring the dead letters of a pipeline in line with what a sink has written.

    Letters whose rows were changed again are superseded: by a change that was written, or by a
    newer letter of the same row. New ones are added; those that a retry brought in are removed.

    Args:
        store: where they are kept.
        ticket: on whose behalf the sink writes.
        written: the changes of the call, the refused ones included.
        faulty: what of them is refused, and what was before.
        most: open letters above which the pipeline stops.
        now: seconds since 1970.
        again: letters that are loaded again, beside those of the ticket.

    Returns:
        The letters that were added.

    Raises:
        FatalError: there are more open letters than that.
    """
    letters = [letter_of(row, ticket, now) for row in faulty]
    if not (letters or ticket.tables_with_dead_letters or ticket.retry_ids):
        return []
    newest = _newest(
        written, letters, {letter.target for letter in letters} | ticket.tables_with_dead_letters
    )
    for target in sorted({target for target, _ in newest} & ticket.tables_with_dead_letters):
        overtaken = [
            pending.id
            for pending in store.pending(ticket.pipeline_key, target)
            if pending.version < newest.get((target, pending.key_hash), -1)
        ]
        if overtaken:
            store.mark(overtaken, State.SUPERSEDED)
            store.trim(ticket.pipeline_key, most)
    letters = [
        replace(letter, state=State.SUPERSEDED)
        if letter.version < newest.get((letter.target, letter.key_hash), -1)
        else letter
        for letter in letters
    ]
    done = set(ticket.retry_ids) - {letter.id for letter in letters}
    if letters:
        _refuse_too_many(store, ticket, letters, most=most + len(done), error=faulty[-1].error)
        store.keep(letters, again={*again, *ticket.retry_ids})
    if done:
        # Last: a row may have become another letter, and between the two calls has both.
        store.remove(done)
    return letters


def _refuse_too_many(
    store: DeadLetterStore,
    ticket: LoadTicket,
    letters: Sequence[DeadLetter],
    *,
    most: int,
    error: DataError,
) -> None:
    coming = [letter.id for letter in letters if letter.state is State.OPEN]
    number = len(coming) + store.tally(ticket.pipeline_key).open
    if number > most and coming:
        # A batch that is applied again brings letters that are there already.
        waiting = (State.OPEN, State.RETRY)
        number -= len(store.find(ticket.pipeline_key, ids=coming, states=waiting))
        if number > most:
            raise too_many(number, most, error)


def loaded_with(letters: Sequence[DeadLetter], loaded: Loaded) -> Loaded:
    """What a sink has done, and the letters that it has written."""
    if not letters:
        return loaded
    return replace(
        loaded,
        dead_letters=len(letters),
        tables_with_dead_letters=frozenset(letter.target for letter in letters),
        fault=letters[0].error,
    )


def too_many(number: int, most: int, error: DataError) -> FatalError:
    """The error for more faulty rows than a pipeline may put aside."""
    faulty = count(number, "faulty row is", "faulty rows are")
    return FatalError(
        f"{faulty} open and `dead_letter_limit` is {most:,}; the last one: {error.message}",
        hint="Fix what is wrong with so many rows, and look at `setl deadletter list`; retry or"
        " drop what is there, or raise the limit, and start the channel again",
        **error.where,
    )


def _newest(
    written: Sequence[TargetChanges], letters: Sequence[DeadLetter], concerned: set[str]
) -> dict[tuple[str, str], int]:
    """Target and key → version of its newest change, for targets that have dead letters."""
    newest: dict[tuple[str, str], int] = {}

    def see(target: str, key: str, version: int) -> None:
        newest[target, key] = max(version, newest.get((target, key), -1))

    for change in written:
        target = target_name(change.target)
        if target in concerned:
            for row, version in zip(change.upserts, change.upsert_versions, strict=False):
                key = tuple(row[i] for i in change.key)
                see(target, key_hash(key, change.document), version)
            for key, version in zip(change.deletes, change.delete_versions, strict=False):
                see(target, key_hash(key, change.document), version)
    for letter in letters:
        if letter.key_hash:
            see(letter.target, letter.key_hash, letter.version)
    return newest


def _name(row: FaultyRow) -> tuple[object, ...]:
    return row.target, row.version, row.operation, row.key, row.number
