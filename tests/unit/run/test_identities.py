"""A target that is not the one that rows were written to before is noticed."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setl.channel.reading import parse_channel
from setl.channel.routes.routing import Router
from setl.errors import ConfigurationError, TargetReplacedError, TransientError
from setl.load.identities import Identity
from setl.model.checkpoint import Checkpoint
from setl.model.leadership import Leadership
from setl.model.load_request import LoadRequest, RequestState
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.model.table_load import TableLoad
from setl.model.table_rows import OTHERS, TableRows
from setl.run.table_loads.reloads import Reloads
from setl.run.targets.identities import LOOK_SECONDS, MOST_KNOWN, Identities
from tests.unit.channel.channels import SEARCH, changed
from tests.unit.select.fakes import ManualClock

ORDERS = ("", "orders")
AT = BinlogPosition("binlog.000001", 4)


class Cluster:
    """Indexes by the names under which they are found."""

    def __init__(self, **there):
        self.there = {name: Identity(id_, name) for name, id_ in there.items()}
        self.asked: list[list[str]] = []
        self.anew: list[tuple[str, bool]] = []
        self.will_reload = False
        self.fails: TransientError | None = None
        self.clock = ManualClock()
        self.identities = Identities(
            self.ask, self._comes, Leadership("shop", "p", "n1", 7), self.clock, self.slept
        )
        self.appears: dict[str, Identity] = {}

    def ask(self, names):
        self.asked.append(sorted(names))
        if self.fails is not None:
            raise self.fails
        return {name: self.there[name] for name in names if name in self.there}

    def slept(self, seconds):
        self.there |= self.appears

    def _comes(self, name, load, *, exists):
        self.anew.append((name, exists))
        return self.will_reload

    def begin(self, *known, **more):
        self.identities.begin(Checkpoint(AT, targets=known, **more))

    def write(self, *names):
        targets = {("", name) for name in names}
        self.identities.check(targets)
        for name in names:
            self.there.setdefault(name, Identity(f"made-{name}", name))
        written = {name: TableRows(upserts=1) for name in names}
        self.identities.loaded(targets, Loaded(tables=written))


def test_what_nothing_is_known_of_is_taken_as_it_is():
    cluster = Cluster(orders="a")
    cluster.begin()
    cluster.write("orders", "items")
    assert dict(cluster.identities.known) == {"orders": "a orders", "items": "made-items items"}


def test_what_was_written_is_known_before_the_checkpoint_passes_it():
    cluster = Cluster()
    cluster.begin()
    cluster.identities.check({ORDERS})
    cluster.identities.loaded({ORDERS}, Loaded())
    assert cluster.identities.known == ()  # nothing passed its `where`, and nothing was made
    cluster.there["orders"] = Identity("a", "orders")
    cluster.identities.loaded({ORDERS}, Loaded(tables={OTHERS: TableRows(1)}))
    assert cluster.identities.known == (("orders", "a orders"),)


def test_an_index_that_is_written_is_looked_at_now_and_then():
    cluster = Cluster(orders="a")
    cluster.begin()
    for _ in range(5):
        cluster.write("orders")
        cluster.identities.idle()
    assert len(cluster.asked) == 1
    cluster.clock.time += LOOK_SECONDS
    cluster.identities.idle()
    cluster.clock.time += LOOK_SECONDS
    cluster.identities.idle()  # nothing was written
    assert len(cluster.asked) == 2


@pytest.mark.parametrize("there", [{}, {"orders": "b"}])
def test_an_index_that_is_gone_or_another_one_stops_the_pipeline(there):
    cluster = Cluster(**there)
    cluster.begin(("orders", "a orders"))
    with pytest.raises(TargetReplacedError, match=r"setl load shop/p") as caught:
        cluster.identities.check({ORDERS})
    assert caught.value.where == {"pipeline": "shop/p", "target": "orders"}
    assert cluster.identities.known == (("orders", "a orders"),)
    assert cluster.anew[0] == ("orders", bool(there))


def test_an_index_that_is_replaced_while_it_is_written_is_noticed_when_nothing_comes():
    cluster = Cluster(orders="a")
    cluster.begin(("orders", "a orders"))
    cluster.write("orders")
    cluster.there["orders"] = Identity("b", "orders")
    cluster.write("orders")
    cluster.clock.time += LOOK_SECONDS
    with pytest.raises(TargetReplacedError):
        cluster.identities.idle()


def test_a_cluster_that_does_not_answer_for_a_moment_is_looked_at_later():
    cluster = Cluster(orders="a")
    cluster.begin(("orders", "a orders"))
    cluster.fails = TransientError("busy")
    with pytest.raises(TransientError):  # what nobody has seen yet is not written to
        cluster.identities.check({ORDERS})
    cluster.fails = None
    cluster.write("orders")
    cluster.fails, cluster.there = TransientError("busy"), {}
    cluster.clock.time += LOOK_SECONDS
    cluster.identities.check({ORDERS})
    cluster.identities.idle()
    cluster.fails = None
    cluster.identities.idle()
    cluster.clock.time += LOOK_SECONDS
    with pytest.raises(TargetReplacedError):
        cluster.identities.idle()


def test_a_node_that_does_not_know_an_index_yet_is_asked_again():
    cluster = Cluster()
    cluster.appears = {"orders": Identity("a", "orders")}
    cluster.begin(("orders", "a orders"))
    cluster.identities.check({ORDERS})


def test_an_alias_may_be_given_to_another_index():
    cluster = Cluster()
    cluster.there["orders"] = Identity("b", "orders-2", alias=True)
    cluster.begin(("orders", "a orders-1"))
    cluster.identities.check({ORDERS})
    assert cluster.identities.known == (("orders", "b orders-2"),)
    cluster.there["orders"] = Identity("c", "orders-2", alias=True)
    cluster.begin(*cluster.identities.known)
    with pytest.raises(TargetReplacedError):
        cluster.identities.check({ORDERS})
    # The index behind it was deleted, and a document has made one of the alias's name.
    cluster.there["orders"] = Identity("d", "orders")
    with pytest.raises(TargetReplacedError):
        cluster.identities.check({ORDERS})


def test_two_names_of_one_index_are_refused():
    cluster = Cluster(orders="a", parts="b")
    cluster.there["all"] = Identity("a", "orders", alias=True)
    cluster.begin()
    cluster.write("orders", "parts")
    with pytest.raises(ConfigurationError, match="all and orders are names of one index"):
        cluster.identities.check({("", "all")})


@pytest.mark.parametrize("there", [{}, {"orders": "b"}])
def test_an_index_whose_tables_are_about_to_be_loaded_may_be_another_one(there):
    cluster = Cluster(**there)
    cluster.will_reload = True
    cluster.begin(("orders", "a orders"))
    cluster.write("orders")
    assert dict(cluster.identities.known) == {
        "orders": "b orders" if there else "made-orders orders"
    }


def test_what_is_stored_is_limited_to_what_was_written_last():
    cluster = Cluster(**{f"i{n}": "a" for n in range(MOST_KNOWN)})
    cluster.begin(*((f"i{n}", f"a i{n}") for n in range(MOST_KNOWN)))
    cluster.write("i0")
    cluster.write("new")
    names = [name for name, _ in cluster.identities.known]
    assert len(names) == MOST_KNOWN
    assert names[-2:] == ["i0", "new"]
    assert "i1" not in names


class Requests:
    def __init__(self, *requests):
        self.requests = requests

    def unanswered(self):
        return self.requests


class Tables:
    def __enter__(self):
        return SimpleNamespace(names=lambda: [("shop", "orders"), ("shop", "old"), ("shop", "u")])

    def __exit__(self, *_):
        pass


def coming(*requests, load=None, exists=True):
    tables = [
        {"from": "shop.orders", "to": "orders", "id": "o-{id}"},
        {"from": "shop.old", "to": "orders", "id": "x-{id}"},
        {"from": "shop.*"},
    ]
    definition = changed("pipelines[0].tables", tables, changed("pipelines[0].target", SEARCH))
    router = Router(parse_channel(definition).pipelines[0])
    asked: Any = Requests(*requests)
    opened: Any = Tables
    return Reloads(asked, opened, router)("orders", load, exists=exists)


def request(*tables, **more):
    return LoadRequest("000001", tables=tables, sent=5.0, **more)


@pytest.mark.parametrize(
    ("requests", "is_planned"),
    [
        ((), False),
        ((request(),), True),
        ((request("shop.orders"),), False),
        ((request("shop.orders", "shop.old"),), True),
        ((request("shop.orders"), request("shop.old")), True),
        ((request("shop.old", "shop.u"),), False),
        ((request(entries=("shop.orders -> orders", "shop.old -> orders")),), True),
        ((request(where="id > 5"),), False),
        ((request("shop.orders", key=("id",), keys=((1,),)),), False),
        ((request(state=RequestState.CANCELLED),), False),
        ((request(state=RequestState.PAUSED),), False),
        ((request(into_empty=True),), False),
    ],
)
def test_only_requests_for_all_rows_that_wait_bring_an_index_back(requests, is_planned):
    assert coming(*requests) is is_planned


def test_a_load_that_has_begun_does_not_bring_back_what_it_has_passed():
    def begun(**more):
        return TableLoad("000001", sent=5.0, **more)

    assert coming(request(), load=begun())
    assert coming(request(), load=begun(table="shop.a", after=(1,)))
    assert not coming(request(), load=begun(table="shop.old", after=(1,)))
    assert not coming(request(), load=begun(table="shop.old"))
    assert coming(request(), load=begun(table="shop.p", again=("shop.orders", "shop.old")))
    assert not coming(request(), load=begun(only=("shop.u",)))
    assert not coming(request("shop.u"), load=begun(tables=("shop.u",)))
    assert not coming(request(), load=begun(until=AT))
    assert not coming(request(), load=begun(cancelled=True))
    assert not coming(request(state=RequestState.CANCELLED), load=begun())
    assert not coming(load=begun(narrowed=True))
    assert coming(load=begun())  # its request is gone, and it goes on
    assert coming(request(), load=TableLoad("000001", sent=4.0, until=AT))  # of an earlier request


def test_an_index_that_is_gone_is_empty():
    assert coming(request(into_empty=True), exists=False)


@given(st.lists(st.sampled_from(["write", "keep", "crash", "delete", "wait"]), max_size=30))
def test_nothing_that_the_checkpoint_has_passed_is_missing_unnoticed(steps):
    """Whenever somebody deletes the index, and whenever a leader dies.

    Elasticsearch makes an index that is gone with the next document.
    """
    cluster = Cluster()
    documents: set[int] = set()
    stored, applied = (0, ()), 0  # what the checkpoint has passed, and what it says of the index
    made = 0
    cluster.begin()
    try:
        for step in [*steps, "wait", "write", "keep", "wait"]:
            if step == "write":
                cluster.identities.check({ORDERS})
                if "orders" not in cluster.there:
                    made += 1
                    cluster.there["orders"] = Identity(str(made), "orders")
                    documents.clear()
                documents.add(applied)
                applied += 1
                written = {"orders": TableRows(upserts=1)}
                cluster.identities.loaded({ORDERS}, Loaded(tables=written))
            elif step == "keep":
                stored = applied, cluster.identities.known
            elif step == "crash":
                applied = stored[0]
                cluster.begin(*stored[1])
            elif step == "delete":
                cluster.there.clear()
                documents.clear()
            else:
                cluster.clock.time += LOOK_SECONDS
                cluster.identities.idle()
    except TargetReplacedError:
        return
    assert set(range(stored[0])) <= documents
