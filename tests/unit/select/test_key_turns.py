"""Where batches end for actions of foreign keys."""

import itertools

import pytest

from setl.clock import SystemClock
from setl.model.checkpoint import Checkpoint
from setl.model.entry import Entry, EntryKind
from setl.model.position import KafkaPosition
from setl.select.batching import BatchAssembler, BatchSettings
from setl.select.key_turns import Turn

TURNS = {"r": Turn.REMOVES, "c": Turn.CHANGES, "A": Turn.ACTS, "M": Turn.MOVES}


class Turns:
    """Rows of the table t are what their payload says, a part for each of its letters."""

    tables = frozenset({("db", "t")})

    def divided(self, entry):
        return [
            (entry._replace(payload=letter.encode()), TURNS[letter])
            for letter in entry.payload.decode()
        ]


def entries(text):
    """``.`` is a commit, ``o`` a row of another table; words are rows of t, each one entry."""
    for offset, word in enumerate(text.split()):
        at = KafkaPosition("t", 0, offset)
        if word == ".":
            yield Entry(EntryKind.COMMIT, at, 1.0)
        elif word == "o":
            yield Entry(EntryKind.ROWS, at, 1.0, "db", "other", rows=1, payload=b"o")
        else:
            yield Entry(EntryKind.ROWS, at, 1.0, "db", "t", rows=1, payload=word.encode())


def batches(text, turns):
    start = Checkpoint(KafkaPosition("t", 0, 0))
    assembler = BatchAssembler(1, start, BatchSettings(), SystemClock(), turns=turns)
    found = assembler.add(list(entries(text)))
    found += [batch for batch in [assembler.take_complete()] if batch]
    return [
        ("!" if batch.acts else "")
        + "".join("." if e.kind is EntryKind.COMMIT else e.payload.decode() for e in batch.entries)
        for batch in found
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c . c .", ["c.c."]),
        ("r . A . r .", ["!r.A.r."]),
        ("c . A . r .", ["c.", "!A.r."]),
        ("A . c .", ["!A.", "c."]),
        ("r c A .", ["rc", "!A."]),
        ("A o A . c", ["!AoA."]),
        ("M M .", ["!M", "!M."]),
        ("A M r .", ["!A", "!M", "r."]),
        ("rcArMc .", ["rc", "!Ar", "!M", "c."]),
        ("o . A .", ["!o.A."]),
    ],
)
def test_batches_end_where_actions_ask_for_it(text, expected):
    assert batches(text, Turns()) == expected


def test_nobody_asks_where_no_key_acts():
    assert batches("rcArMc . c .", None) == ["rcArMc.c."]


def test_no_batch_has_an_action_beside_a_change():
    for turns in itertools.product("rcAM", repeat=5):
        for batch in batches(" ".join(turns) + " .", Turns()):
            kinds = set(batch) & set("rcAM")
            assert not ({"A"} < kinds and "c" in kinds), batch
            assert "M" not in kinds or batch.count("M") == len(batch.strip("!.")) == 1
            assert batch.startswith("!") == bool(kinds & set("AM"))
