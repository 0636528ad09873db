"""When a leader looks at dead letters, and what it does with those it is asked to load."""

import json
from contextlib import contextmanager
from typing import Any

import pytest

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.errors import FatalError, FencedError, TargetReplacedError, TransientError
from setl.load.deadletters.dead_letter import State
from setl.model.entry import Entry, EntryKind
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.run.dead_letters import DeadLetterHandler
from setl.run.measured.progress import Progress
from setl.run.spark.session import spark_gone
from tests.letters import MemoryDeadLetters, letter
from tests.loading import ticket_for

PIPELINE = "shop/p"
END = {"type": "mysql", "host": "a", "user": "u"}
SHOP = Router(
    parse_channel(
        {
            "channel": "shop",
            "pipelines": [
                {
                    "name": "p",
                    "source": END,
                    "target": {**END, "host": "b"},
                    "tables": [{"from": "shop.*"}],
                }
            ],
        }
    ).pipelines[0]
)


def truncated(table):
    position = BinlogPosition("b.000001", 4)
    return Entry(EntryKind.DDL, position, 0.0, schema="shop", statement=f"TRUNCATE {table}")


class Clock:
    seconds = 100.0

    def monotonic(self):
        return self.seconds

    def now(self):
        return 1_000.0 + self.seconds


class Job:
    """Loads what is not in `bad`; of `poison` not even the load works."""

    def __init__(self, store):
        self.store = store
        self.bad = set()
        self.poison = {}
        self.loads = []

    def reload(self, letters, ticket):
        self.loads.append([x.version for x in letters])
        assert set(ticket.retry_ids) == {x.id for x in letters}
        for each in letters:
            if each.version in self.poison:
                raise self.poison[each.version]
        self.store.remove([x.id for x in letters if x.version not in self.bad])
        again = [x for x in letters if x.version in self.bad]
        self.store.keep([letter(PIPELINE, x.version - 1000, error="again") for x in again])
        return Loaded(dead_letters=len(again))


class Scene:
    def __init__(self):
        self.store, self.clock, self.opened = MemoryDeadLetters(), Clock(), 0
        self.progress = Progress(self.clock)
        self.job: Any = Job(self.store)
        leading = Leadership("shop", "p", "n1", 7)
        self.handler = DeadLetterHandler(
            self.open, self.job, leading, self.progress, self.clock, router=SHOP
        )

    @contextmanager
    def open(self):
        self.opened += 1
        yield self.store

    def look(self, allowed=True):
        self.handler.look(lambda: ticket_for("p"), lambda: allowed)

    @property
    def states(self):
        return {x.version - 1000: x.state.value for x in self.store.letters.values()}


@pytest.fixture
def scene():
    return Scene()


def test_letters_of_earlier_leaderships_are_known_at_once(scene):
    scene.store.keep([letter(PIPELINE, 1), letter(PIPELINE, 2, state=State.SUPERSEDED, target="x")])
    scene.handler.begin()
    assert scene.handler.tables_with_dead_letters == {"shop.orders"}
    assert scene.progress.figures().dead_letters == 1


def test_without_letters_nobody_is_asked_but_once_a_minute(scene):
    scene.handler.begin()
    for _ in range(100):
        scene.look()
    assert scene.opened == 1
    scene.clock.seconds += 60
    scene.look()
    assert scene.opened == 2


def test_what_a_load_puts_aside_is_known_before_the_next_load(scene):
    scene.handler.begin()
    scene.handler.loaded(
        Loaded(dead_letters=2, tables_with_dead_letters=frozenset({"shop.items"})), "b:1"
    )
    assert scene.handler.tables_with_dead_letters == {"shop.items"}
    assert scene.progress.figures().dead_lettered == 2
    scene.store.keep([letter(PIPELINE, 1, target="shop.items")])
    scene.look()
    assert scene.progress.figures().dead_letters == 1


def test_a_target_sees_how_old_the_decision_to_load_letters_is(scene):
    """An index forgets deletes: what a leader had in hand when it froze is given up by its age."""

    def freezes():
        scene.clock.seconds += 5_000
        return True

    begun = []
    scene.job.reload = lambda letters, ticket: begun.append(ticket.begun) or Loaded()
    scene.store.keep([letter(PIPELINE, 1, state=State.RETRY)])
    scene.handler.begin()
    scene.clock.seconds += 2
    decided = scene.clock.now()
    scene.handler.look(lambda: ticket_for("p"), freezes)
    assert begun == [decided]


def test_letters_are_loaded_in_the_order_of_the_stream_and_only_if_asked_for(scene):
    scene.store.keep([letter(PIPELINE, n, state=State.RETRY) for n in (3, 1)])
    scene.store.keep([letter(PIPELINE, 2), letter(PIPELINE, 4, state=State.SUPERSEDED)])
    scene.handler.begin()
    scene.clock.seconds += 2
    scene.look(allowed=False)
    assert scene.job.loads == []
    scene.clock.seconds += 2
    scene.look()
    assert scene.job.loads == [[1001, 1003]]
    assert scene.states == {2: "open", 4: "superseded"}
    assert scene.progress.figures().dead_letters == 1


def test_a_letter_that_is_refused_again_is_open_again(scene):
    scene.store.keep([letter(PIPELINE, n, state=State.RETRY) for n in (1, 2)])
    scene.job.bad = {1002}
    scene.look()
    (left,) = scene.store.letters.values()
    assert (left.state, left.error, left.attempts) == (State.OPEN, "again", 2)
    scene.clock.seconds += 100
    scene.look()
    assert len(scene.job.loads) == 1


def test_a_letter_with_which_no_load_works_stops_no_other(scene):
    scene.store.keep([letter(PIPELINE, n, state=State.RETRY) for n in range(8)])
    scene.job.poison = {1005: FatalError("no such table", hint="make it")}
    scene.look()
    (left,) = scene.store.letters.values()
    assert (left.version, left.state, left.error) == (1005, State.OPEN, "no such table")
    assert (left.attempts, left.epoch, left.at) == (2, 7, 1100.0)
    assert len(scene.job.loads) == 7


@pytest.mark.parametrize(
    "error",
    [TransientError("gone"), FencedError("newer"), TargetReplacedError("other"), spark_gone(-9)],
    ids=str,
)
def test_an_error_that_is_about_no_letter_ends_the_look(scene, error):
    scene.store.keep([letter(PIPELINE, n, state=State.RETRY) for n in range(4)])
    scene.job.poison = {1002: error}
    with pytest.raises(type(error)):
        scene.look()
    assert set(scene.states.values()) == {"retry"}
    scene.job.poison = {}
    scene.clock.seconds += 2
    scene.look()
    assert scene.states == {}


def test_a_schema_change_leaves_letters_that_a_person_decides_about(scene):
    stored = [letter(PIPELINE, 1), letter(PIPELINE, 2, state=State.RETRY)]
    others = [letter(PIPELINE, 3, target="shop.items"), letter(PIPELINE, 4, state=State.SUPERSEDED)]
    scene.store.keep([*stored, *others])
    scene.handler.begin()
    scene.handler.before_schema_changes([truncated("items")])
    scene.handler.before_schema_changes([truncated("orders")])
    assert scene.states == {1: "open", 2: "open", 3: "open", 4: "superseded"}
    hashes = {x.version - 1000: x.key_hash for x in scene.store.letters.values()}
    assert [hashes[n] for n in (1, 2, 3)] == ["", "", ""]
    assert hashes[4]
    opened = scene.opened
    scene.handler.before_schema_changes([truncated("parts")])
    assert scene.opened == opened


def test_letters_of_another_mapping_are_left_to_a_person_by_the_next_leader(scene):
    (entry,) = SHOP.entries
    stored = [
        letter(PIPELINE, 1, payload=json.dumps({"mapped_by": "another"}), state=State.RETRY),
        letter(PIPELINE, 2, payload=json.dumps({"mapped_by": entry.mapped_by}), state=State.RETRY),
        letter(PIPELINE, 3, target="shop.before"),
        # Somebody has asked for this one all the same.
        letter(PIPELINE, 4, target="shop.before", key_hash="", state=State.RETRY),
    ]
    scene.store.keep(stored)
    scene.handler.begin()
    assert scene.states == {1: "open", 2: "retry", 3: "open", 4: "retry"}
    assert {x.version - 1000 for x in scene.store.letters.values() if x.key_hash} == {2}
    scene.clock.seconds += 2
    scene.look()
    assert scene.job.loads == [[1002, 1004]]
