"""What becomes of dead letters when a sink writes."""

from dataclasses import replace
from typing import Any

import pytest

from setl.errors import DataError, FatalError
from setl.load.deadletters.dead_letter import State, letter_of
from setl.load.deadletters.storing import Faults, update_letters
from setl.model.change import Op, TargetChanges
from setl.model.faulty import FaultyRow, SourceChange
from setl.model.schema import Column, Kind, RowSchema
from tests.letters import MemoryDeadLetters
from tests.loading import ticket_for

ID, NAME = Column("id", Kind.INTEGER), Column("name", Kind.TEXT)
TICKET = ticket_for("p")
LETTERED = replace(TICKET, tables_with_dead_letters=frozenset({"s.t"}))
PIPELINE = TICKET.pipeline_key


def changes(*upserts, deletes=(), table="t"):
    """Upserts and deletes as (version, row)."""
    return TargetChanges(
        ("s", table),
        (ID, NAME),
        (0,),
        [row for _, row in upserts],
        [key for _, key in deletes],
        [version for version, _ in upserts],
        [version for version, _ in deletes],
    )


def refused(change, *numbers, most=100):
    faults = Faults((), most)
    for number in numbers:
        faults.upserts(change)(number, DataError("too long"))
    return faults.rows


class StoredCheckpoint:
    def __init__(self):
        self.store = MemoryDeadLetters()

    def update_letters(self, written, faulty=(), ticket=LETTERED, most=100):
        return update_letters(self.store, ticket, written, faulty, most=most, now=1.0)

    @property
    def states(self):
        return [(x.version, x.state) for x in self.store.find(PIPELINE)]


@pytest.fixture
def stored():
    stored = StoredCheckpoint()
    change = changes((5, (1, "a")), (5, (2, "b")))
    stored.update_letters([change], refused(change, 0, 1))
    assert stored.states == [(5, State.OPEN)] * 2
    return stored


def test_a_later_change_supersedes_the_letter_of_its_row_alone(stored):
    stored.update_letters([changes((7, (1, "c")), (7, (3, "c")))])
    assert sorted(stored.states, key=str) == [(5, State.OPEN), (5, State.SUPERSEDED)]


def test_so_does_a_delete_and_a_newer_letter(stored):
    change = changes((7, (1, "c")), deletes=[(6, (2,))])
    stored.update_letters([change], refused(change, 0))
    assert sorted(stored.states, key=str) == [
        (5, State.SUPERSEDED),
        (5, State.SUPERSEDED),
        (7, State.OPEN),
    ]


def test_a_change_that_waits_for_its_retry_is_superseded_too(stored):
    stored.store.mark(stored.store.letters, State.RETRY)
    stored.update_letters([changes((7, (1, "c")))])
    assert (5, State.SUPERSEDED) in stored.states


@pytest.mark.parametrize(
    "written",
    [changes((3, (1, "old"))), changes((5, (1, "a"))), changes((7, (1, "c")), table="u")],
    ids=["older, applied again", "the same record", "another table"],
)
def test_what_is_not_a_later_change_of_the_row_does_not(stored, written):
    stored.update_letters(
        [written], ticket=replace(TICKET, tables_with_dead_letters=frozenset({"s.t", "s.u"}))
    )
    assert stored.states == [(5, State.OPEN)] * 2


def test_without_letters_nobody_is_asked():
    nobody: Any = None
    assert update_letters(nobody, TICKET, [changes((7, (1, "c")))], [], most=1, now=1.0) == []


def unkeyed(version, number):
    content = SourceChange(RowSchema("s", "t", (ID,)), Op.INSERT, None, (1,), number=number)
    return FaultyRow(("s", "t"), "s.t", version, content, DataError("no key"))


def keyed(version, key):
    content = SourceChange(RowSchema("s", "t", (ID,), (0,)), Op.INSERT, None, key)
    return FaultyRow(("s", "t"), "s.t", version, content, DataError("no"), key, (ID,))


def test_a_letter_whose_row_is_written_later_in_the_same_load_is_superseded_at_once():
    stored = StoredCheckpoint()
    stored.update_letters(
        [changes((7, (1, "c")))], [keyed(5, (1,)), keyed(8, (2,)), unkeyed(5, 0)], TICKET
    )
    assert sorted(stored.states, key=str) == [
        (5, State.OPEN),  # nobody knows which row it is about
        (5, State.SUPERSEDED),
        (8, State.OPEN),
    ]


def test_a_load_that_is_applied_again_doubles_nothing_even_at_the_limit(stored):
    change = changes((5, (1, "a")), (5, (2, "b")))
    stored.update_letters([change], refused(change, 0, 1), most=2)
    assert stored.states == [(5, State.OPEN)] * 2
    assert {x.attempts for x in stored.store.letters.values()} == {2}


def test_above_the_limit_nothing_is_put_aside(stored):
    change = changes((7, (3, "c")), (7, (4, "d")))
    with pytest.raises(FatalError, match="4 faulty rows are open and `dead_letter_limit` is 3"):
        stored.update_letters([change], refused(change, 0, 1), most=3)
    assert stored.states == [(5, State.OPEN)] * 2
    with pytest.raises(FatalError, match="dead_letter_limit"):
        refused(changes(*((7, (n, "x")) for n in range(9))), *range(9), most=8)


def test_without_a_limit_the_first_faulty_row_is_the_error():
    with pytest.raises(DataError, match="too long"):
        refused(changes((7, (3, "c"))), 0, most=0)


def test_letters_that_are_loaded_again_go_unless_they_are_refused_again(stored):
    first, second = stored.store.find(PIPELINE)
    again = [x for x in ((1, "a"), (2, "b")) if letter_id((5, x)) == second.id]
    change = changes((5, again[0]))
    ticket = replace(LETTERED, retry_ids=(first.id, second.id))
    stored.update_letters([change], refused(change, 0), ticket, most=1)
    (left,) = stored.store.find(PIPELINE)
    assert (left.id, left.attempts) == (second.id, 2)


@pytest.mark.parametrize("of_ticket", [True, False])
def test_a_letter_that_is_dropped_while_it_is_loaded_again_does_not_come_back(stored, of_ticket):
    ids = {x.id for x in stored.store.find(PIPELINE)}
    change = changes((5, (1, "a")), (5, (2, "b")))
    stored.store.remove([letter_id((5, (1, "a")))])
    ticket, more = (replace(LETTERED, retry_ids=tuple(ids)), ()) if of_ticket else (LETTERED, ids)
    rows = refused(change, 0, 1)
    update_letters(stored.store, ticket, [change], rows, most=100, now=1.0, again=more)
    (left,) = stored.store.find(PIPELINE)
    assert (left.key_values, left.attempts) == ("[2]", 2)


def letter_id(upsert):
    (row,) = refused(changes(upsert), 0)
    return letter_of(row, TICKET, 1.0).id


def test_superseded_letters_do_not_pile_up(stored):
    for version in range(6, 30):
        change = changes((version, (1, "a")))
        stored.update_letters([change], refused(change, 0), most=5)
    tally = stored.store.tally(PIPELINE)
    assert (tally.open, tally.superseded) == (2, 5)
