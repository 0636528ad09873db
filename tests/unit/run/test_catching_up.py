"""Which rows of other moments may go, where one of them conflicts with another one."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from setl.errors import CollisionError
from setl.load.sink import LoadTicket
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.run.loads.catching_up import CatchingUp

TICKET = LoadTicket(Leadership("c", "p", "n1", 5), 0, 0)
LOADING = [(("s", "loading"), SimpleNamespace(target=("t", "loading")))]


class Router:
    rereads = True

    def route(self, schema, table):
        into = "both" if table in {"one", "two"} else table
        return [
            SimpleNamespace(
                index=0, rereads=table != "plain", target=("t", into), nests=lambda *_: False
            )
        ]


def row(table) -> Any:
    entry = SimpleNamespace(schema="s", table=table)
    return entry, Router().route("s", table)


@pytest.fixture
def loaded():
    """The tables of each attempt, and the opened sources; None for an error that comes through."""

    def load(loading, tables, *, isolates=False, agree=True, suffices=True):
        attempts: list[list[str] | None] = []
        opened: list[object] = []

        def run(ticket):
            attempts.append(sorted(ticket.catching_up))
            if not isolates and not (suffices and ticket.catching_up):
                raise CollisionError("conflicts with another row")
            return Loaded(rows=1)

        def source():
            opened.append(None)
            names = [("s", n) for n in ("loading", "plain", "read", "one", "two")]
            return nullcontext(SimpleNamespace(names=lambda: names))

        catching_up = CatchingUp(
            Router(),  # type: ignore[arg-type]
            source,  # type: ignore[arg-type]
            lambda named: frozenset(".".join(name) for name, _ in named if agree),
            isolates=isolates,
        )
        try:
            catching_up.load(run, TICKET, loading, [row(each) for each in tables])
        except CollisionError:
            attempts.append(None)
        return attempts, len(opened)

    return load


def test_a_load_without_such_tables_is_run_once(loaded):
    assert loaded([], ["plain"]) == ([[], None], 0)


def test_all_such_tables_may_go_at_the_second_attempt(loaded):
    assert loaded(LOADING, ["plain"]) == ([[], ["s.loading"]], 0)
    assert loaded([], ["plain", "read"]) == ([[], ["s.read"]], 1)
    assert loaded(LOADING, ["read"]) == ([[], ["s.loading", "s.read"]], 1)
    assert loaded(LOADING, ["read"], suffices=False) == ([[], ["s.loading", "s.read"], None], 1)


def test_rows_of_tables_that_go_into_one_target_never_go(loaded):
    assert loaded([], ["one"]) == ([[], None], 1)


def test_rows_that_are_put_aside_raise_no_error_so_tables_are_asked_first(loaded):
    assert loaded(LOADING, ["read"], isolates=True) == ([["s.loading", "s.read"]], 1)
    assert loaded([], ["plain"], isolates=True) == ([[]], 0)


def test_a_load_that_no_table_may_go_for_is_not_run_again(loaded):
    assert loaded(LOADING, ["read"], agree=False) == ([[], None], 1)
