"""What every `DeadLetterStore` does, wherever the letters are kept."""

from dataclasses import replace

import pytest

from setl.load.deadletters.dead_letter import State
from setl.load.deadletters.store import Pending, Tally
from setl.systems.mysql.stored.deadletters import opened_table
from setl.systems.search_index.deadletters import opened_index
from tests.databases import EACH
from tests.families import Pair
from tests.index_products import PRODUCTS
from tests.index_products import endpoint_of as cluster_of
from tests.letters import MemoryDeadLetters, letter
from tests.loading import create_system_tables, endpoint_of, unique


@pytest.fixture(params=[*EACH, "memory", *PRODUCTS])
def store(request):
    if request.param == "memory":
        yield MemoryDeadLetters()
    elif isinstance(request.param, Pair):
        server = request.getfixturevalue("databases").site(request.param, 0)
        create_system_tables(server)
        with opened_table(endpoint_of(server)) as store:
            yield store
    else:
        server = request.getfixturevalue(request.param)
        with opened_index(cluster_of(request.param, server.url)) as store:
            yield store


@pytest.fixture
def pipeline():
    return f"shop/{unique('p')}"


def test_a_pipeline_without_letters(store, pipeline):
    assert store.find(pipeline) == []
    assert store.tally(pipeline) == Tally(0, 0, 0, {})
    assert store.pending(pipeline, "shop.orders") == []
    assert store.remove(["0000000000000000"]) == 0
    store.mark(["0000000000000000"], State.RETRY)
    store.trim(pipeline, 0)
    store.keep([])


def test_letters_come_back_as_they_were_in_the_order_of_the_stream(store, pipeline):
    letters = [letter(pipeline, n) for n in (3, 1, 2)]
    store.keep(letters)
    assert store.find(pipeline) == sorted(letters, key=lambda x: x.version)
    assert [x.version for x in store.find(pipeline, newest=True, limit=2)] == [1003, 1002]
    assert store.find(f"{pipeline}x") == []


def test_an_unknown_key_stays_unknown(store, pipeline):
    store.keep([letter(pipeline, 1, key_hash="", key_values=None)])
    (found,) = store.find(pipeline)
    assert (found.key_hash, found.key_values) == ("", None)
    assert store.pending(pipeline, "shop.orders") == []


def test_keeping_a_letter_again_counts_the_attempt_and_takes_the_newer_error(store, pipeline):
    store.keep([letter(pipeline, 1)])
    store.mark([letter(pipeline, 1).id], State.RETRY)
    again = letter(pipeline, 1, error="still", payload="{}", nid="n2", epoch=(1 << 62) + 7)
    store.keep([again])
    assert store.find(pipeline) == [replace(again, attempts=2)]


def test_a_letter_that_is_dropped_while_it_is_loaded_again_does_not_come_back(store, pipeline):
    store.keep([letter(pipeline, 1), letter(pipeline, 2)])
    ids = [letter(pipeline, n).id for n in (1, 2)]
    store.mark(ids, State.RETRY)
    assert store.remove(ids[:1]) == 1
    refused = [letter(pipeline, n, error="still", epoch=(1 << 62) + 7) for n in (1, 2, 3)]
    store.keep(refused, again=ids)
    assert store.find(pipeline) == [replace(refused[1], attempts=2), refused[2]]


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_former_leader_replaces_no_letter_of_a_newer_one(request, product, pipeline):
    """No transaction keeps it out; the letter may be superseded by now, and would be open again."""
    url = request.getfixturevalue(product).url
    with opened_index(cluster_of(product, url)) as store:
        store.keep([letter(pipeline, 1, epoch=7)])
        store.mark([letter(pipeline, 1).id], State.SUPERSEDED)
        late = [letter(pipeline, 1, epoch=6), letter(pipeline, 2, epoch=6)]
        store.keep(late)
        store.keep(late[:1], again=[late[0].id])
        assert [(x.state, x.epoch) for x in store.find(pipeline)] == [
            (State.SUPERSEDED, 7),
            (State.OPEN, 6),
        ]
        store.keep([letter(pipeline, 2, epoch=5)], again=[late[1].id])
        store.keep([letter(pipeline, 1, epoch=8)])
        assert [x.epoch for x in store.find(pipeline)] == [8, 5]


def test_the_states_of_letters_are_reported_without_their_rows(store, pipeline):
    assert store.states(pipeline) == {}
    store.keep([letter(pipeline, 1), letter(pipeline, 2, state=State.SUPERSEDED)])
    ids = [letter(pipeline, n).id for n in (1, 2)]
    assert store.states(pipeline) == {ids[0]: State.OPEN, ids[1]: State.SUPERSEDED}
    assert store.states(pipeline, [ids[1], "0000000000000000"]) == {ids[1]: State.SUPERSEDED}
    assert store.states(f"{pipeline}x") == {}


def test_letters_are_found_by_what_they_are(store, pipeline):
    store.keep(
        [
            letter(pipeline, 1),
            letter(pipeline, 2, target="shop.items", source="shop.parts"),
            letter(pipeline, 3, state=State.SUPERSEDED),
        ]
    )

    def found(**query):
        return [x.version - 1000 for x in store.find(pipeline, **query)]

    assert found(target="shop.items") == [2]
    assert found(target="shop.parts") == [2]
    assert found(target="shop.orders") == [1, 3]
    assert found(states=[State.SUPERSEDED]) == [3]
    assert found(states=[State.OPEN, State.SUPERSEDED]) == [1, 2, 3]
    assert found(ids=[letter(pipeline, n).id for n in (1, 3)]) == [1, 3]
    assert found(ids=[letter(pipeline, 1).id], states=[State.RETRY]) == []


def test_letters_change_their_state_and_go(store, pipeline):
    letters = [letter(pipeline, n) for n in range(4)]
    store.keep(letters)
    store.mark([letters[0].id, letters[1].id], State.RETRY)
    store.mark([letters[3].id], State.SUPERSEDED)
    assert store.tally(pipeline) == Tally(3, 2, 1, {"shop.orders": 3})
    assert store.remove([letters[0].id, letters[2].id, "0000000000000000"]) == 2
    assert store.tally(pipeline) == Tally(1, 1, 1, {"shop.orders": 1})


def test_what_is_superseded_is_not_loaded_again(store, pipeline):
    stored = [letter(pipeline, 1), letter(pipeline, 2, state=State.SUPERSEDED)]
    store.keep(stored)
    store.mark([x.id for x in stored], State.RETRY)
    assert [x.state for x in store.find(pipeline)] == [State.RETRY, State.SUPERSEDED]


def test_the_key_of_a_letter_can_be_forgotten(store, pipeline):
    states = State.OPEN, State.RETRY, State.SUPERSEDED
    stored = [letter(pipeline, n, state=state) for n, state in enumerate(states)]
    store.keep(stored)
    store.forget_keys([*(x.id for x in stored), "0000000000000000"])
    forgotten = [replace(x, state=State.OPEN, key_hash="") for x in stored[:2]]
    assert store.find(pipeline) == [*forgotten, stored[2]]
    assert store.pending(pipeline, "shop.orders") == []


def test_what_a_later_change_can_supersede(store, pipeline):
    store.keep(
        [
            letter(pipeline, 1),
            letter(pipeline, 2, state=State.RETRY),
            letter(pipeline, 3, state=State.SUPERSEDED),
            letter(pipeline, 4, target="shop.items"),
        ]
    )
    expected = [
        Pending(letter(pipeline, n).id, letter(pipeline, n).key_hash, 1000 + n) for n in (1, 2)
    ]
    assert sorted(store.pending(pipeline, "shop.orders"), key=lambda p: p.version) == expected


def test_of_superseded_letters_the_newest_stay(store, pipeline):
    store.keep([letter(pipeline, n, state=State.SUPERSEDED) for n in range(5)])
    store.keep([letter(pipeline, 9)])
    store.trim(pipeline, 2)
    assert [x.version for x in store.find(pipeline)] == [1003, 1004, 1009]


def test_more_letters_than_a_page(store, pipeline):
    letters = [letter(pipeline, n, payload="{}") for n in range(1203)]
    store.keep(letters)
    assert len(store.find(pipeline)) == 1203
    assert [x.version for x in store.find(pipeline, limit=600)][-1] == 1599
    assert store.remove([x.id for x in letters]) == 1203
