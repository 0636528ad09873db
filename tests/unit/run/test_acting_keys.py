"""The foreign keys that one leadership carries out."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from setl.errors import FatalError, TransientError
from setl.extract.extractor import RoutedRows
from setl.load.key_actions import ActingKey, KeysFound
from setl.model.change import ABSENT, DecodedRows, Op, Row
from setl.model.entry import Entry, EntryKind
from setl.model.key_action import KeyAction
from setl.model.position import KafkaPosition
from setl.model.schema import Column, Kind, RowSchema
from setl.run.targets.acting_keys import ActingKeys
from setl.select.key_turns import Turn

COLUMNS = (Column("ID", Kind.INTEGER), Column("v", Kind.INTEGER))
AT = KafkaPosition("t", 0, 9)
CHECKPOINT: Any = SimpleNamespace(targets=(("x.c", "stored"),))


def acting(child, parent, on_delete="CASCADE", on_update="", name="f"):
    names = (("x", child), ("p",), ("x", parent), ("id",))
    action = KeyAction(name, *names, on_delete, on_update)
    return ActingKey(action, ("db", child), ("db", parent))


CHAIN = (acting("c", "p", on_update="CASCADE"), acting("g", "c"), acting("n", "p", "SET NULL"))


def found(*keys, lacking=()):
    ids = frozenset(key.action.id for key in keys)
    return KeysFound(keys, ids | frozenset(lacking), frozenset(lacking))


class Codec:
    """Payloads are records of four bytes: an operation, whether keys were checked, two keys."""

    def records(self, payload):
        parts = [payload[i : i + 4] for i in range(0, len(payload), 4)]
        return [(len(parts) - i, part) for i, part in enumerate(parts, 1)]

    def operation(self, payload):
        op = {"I": Op.INSERT, "U": Op.UPDATE, "D": Op.DELETE}.get(payload[:1].decode())
        return op and (op, payload[1:2] == b"+")

    def join(self, payloads):
        return b"".join(payload for _, payload in payloads)

    def decode(self, payload, context):
        before, after = (ABSENT if c == "-" else int(c) for c in payload[2:].decode())
        images: list[tuple[Row | None, Row | None]] = [((before, 0), (after, 1))]
        return DecodedRows(RowSchema("db", "p", COLUMNS, (0,)), Op.UPDATE, images)


class Keys:
    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def find(self, known, before=None):
        self.asked.append((known, before))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def keys_of(*answers, replicates=True):
    keys = ActingKeys(cast("Any", Codec()), cast("Any", Keys(*answers)), passes=replicates)
    keys.begin(CHECKPOINT)
    return keys


def entry(table, payload):
    return Entry(EntryKind.ROWS, AT, 1.0, "db", table, rows=len(payload) // 4, payload=payload)


@pytest.mark.parametrize(
    ("table", "payload", "turns"),
    [
        ("p", b"D+11D+22", [(b"D+11D+22", Turn.ACTS)]),
        ("p", b"D 11", [(b"D 11", Turn.REMOVES)]),
        ("p", b"I+11U+11", [(b"I+11U+11", Turn.CHANGES)]),
        ("p", b"U+1-", [(b"U+1-", Turn.CHANGES)]),
        ("p", b"U 12", [(b"U 12", Turn.CHANGES)]),
        ("p", b"U+12U+23", [(b"U+12", Turn.MOVES), (b"U+23", Turn.MOVES)]),
        (
            "p", b"I+11I+22D+11D+22U+34U+33",
            [(b"I+11I+22", Turn.CHANGES), (b"D+11D+22", Turn.ACTS), (b"U+34", Turn.MOVES),
             (b"U+33", Turn.CHANGES)],
        ),
        ("c", b"U+12", [(b"U+12", Turn.CHANGES)]),
        ("g", b"D+11", [(b"D+11", Turn.REMOVES)]),
    ],
)  # fmt: skip
def test_rows_are_divided_by_what_they_do(table, payload, turns):
    parts = keys_of(found(*CHAIN)).divided(entry(table, payload))
    assert [(part.payload, turn) for part, turn in parts] == turns
    assert sum(part.rows for part, _ in parts) == len(payload) // 4
    assert parts[-1][0].position == AT


def test_moves_of_keys_are_reported_in_order():
    rows = [RoutedRows(entry("p", b"U+34U 12U+55U+23"), ()), RoutedRows(entry("c", b"U+12"), ())]
    (first, second) = keys_of(found(*CHAIN)).moves(rows)
    assert (first.target, first.old, first.new) == (("x", "p"), (3,), (4,))
    assert (second.columns, second.old, second.new) == (COLUMNS[:1], (2,), (3,))


@pytest.mark.parametrize(
    ("table", "payload", "names"),
    [
        ("p", b"D+11", ("db.g",)),
        ("c", b"D+11", ()),
        ("p", b"U+12", ("db.c", "db.g", "db.n")),
        ("s", b"D+11", ("db.s",)),
    ],
)
def test_what_rows_ahead_of_the_stream_make_ambiguous(table, payload, names):
    keys = keys_of(found(*CHAIN, acting("s", "s")))
    assert keys.doubtful([RoutedRows(entry(table, payload), ())]) == names


def test_keys_that_come_with_a_schema_change_have_what_follows_read_again():
    keys = keys_of(found(CHAIN[1]), found(*CHAIN), found(*CHAIN), found(CHAIN[0]))
    assert keys.tables == {("db", "c"), ("db", "g")}
    assert keys.after_changes()
    assert keys.tables >= {("db", "p"), ("db", "n")}
    assert not keys.after_changes()
    assert not keys.after_changes()  # fewer need no other batches
    asked = cast("Any", keys)._keys.asked
    assert asked[0] == (CHECKPOINT.targets, None)
    assert asked[1] == ((("x.g", "f"),), {("x.g", "f")})


def test_where_schema_changes_do_not_pass_the_source_is_asked_each_time():
    keys = keys_of(found(CHAIN[1]), found(CHAIN[1]), replicates=False)
    assert not keys.after_changes()
    assert cast("Any", keys)._keys.asked == [((), None), ((), None)]


def test_a_key_that_nobody_knew_to_act_is_reported_when_it_goes():
    keys = keys_of(found(lacking=[("x.c", "old")]), found())
    with pytest.raises(FatalError, match=r"the foreign key old of the target's table x\.c is gone"):
        keys.after_changes()


def test_a_look_that_failed_is_made_up_for():
    keys = keys_of(found(), TransientError("gone away"), found(*CHAIN))
    keys.begin(CHECKPOINT)  # nothing is asked twice
    with pytest.raises(TransientError, match="gone away"):
        keys.after_changes()
    with pytest.raises(TransientError, match="read again"):
        keys.begin(CHECKPOINT)
    assert keys.tables
    keys.begin(CHECKPOINT)


def test_a_target_without_such_keys():
    keys = ActingKeys(cast("Any", Codec()), None, passes=True)
    keys.begin(CHECKPOINT)
    assert not keys.after_changes()
    assert (keys.tables, keys.actions, keys.known) == (frozenset(), (), ())
