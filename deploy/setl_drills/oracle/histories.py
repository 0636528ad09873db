"""Random histories of a schema: sessions, transactions and schema changes, one after another."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from setl_drills.oracle.alters import Alters
from setl_drills.oracle.definitions import Grammar
from setl_drills.oracle.rows import Rows
from setl_drills.oracle.sessions import Session, Step, random_session
from setl_drills.oracle.shapes import Shape

Look = Callable[[], Mapping[str, Shape]]
"""Says what tables there are now."""
_DEFINING = ("CREATE ", "ALTER ", "DROP ", "RENAME ")
_SHADOWS = ("_gho", "_new")


def rows_of(chance: random.Random, shape: Shape, count: int) -> Iterator[Step]:
    """Transactions on one table, in a session with the defaults: so many statements, or a few more.

    Values are such that a column of any character set can hold them.

    Args:
        chance: decides.
        shape: the table.
        count: of statements that change rows.
    """
    rows = Rows(chance, Session(), shape, odd=0)
    while count > 0:
        statements = [s for _ in range(chance.choice([1, 1, 2, 5, 30])) for s in rows.some()]
        yield Step("BEGIN")
        yield from map(Step, statements)
        yield Step("COMMIT")
        count -= len(statements)


class History:
    """Makes up move after move; each depends on what tables there are by then."""

    def __init__(
        self, chance: random.Random, grammar: Grammar, schema: str, look: Look, *, wild: bool
    ) -> None:
        """Begin one.

        Args:
            chance: decides.
            grammar: what may be made up.
            schema: whose tables they are.
            look: says what tables there are.
            wild: whether sessions may be without strict mode.
        """
        self._chance = chance
        self._grammar = grammar
        self._schema = schema
        self._look = look
        self._wild = wild and grammar.has("lenient")
        self._shapes: Mapping[str, Shape] = {}
        self._session = Session()
        self._stale = True
        self._paused = False

    def moves(self) -> Iterator[list[Step]]:
        """The statements of each move; they may be refused by the source, one by one."""
        yield self._new_session()
        for _ in range(self._chance.choice([1, 2, 2, 3])):
            yield self._sent(Alters.create)
        while True:
            yield self._move()

    def _move(self) -> list[Step]:
        if not self._tables():
            return self._sent(Alters.create)
        kinds: dict[Callable[[], list[Step]], int] = {
            self._rows: 60,
            self._transaction: 25,
            self._new_session: 12,
            self._changed: 22 if self._grammar.has("ddl") else 0,
            self._created: 4 if self._grammar.has("ddl") else 0,
            self._bulk: 4,
            self._of_two: 5,
            self._with_image: 4 if self._grammar.has("images") else 0,
            self._xa: 3 if self._grammar.has("xa") else 0,
            self._trigger: 1,
            self._behind: (10 if self._paused else 2) if self._grammar.has("behind") else 0,
            self._load: 2 if self._grammar.has("load") and not self._paused else 0,
        }
        return self._chance.choices(list(kinds), list(kinds.values()))[0]()

    def _tables(self) -> Mapping[str, Shape]:
        if self._stale:
            found = self._look()
            self._shapes = {name: shape for name, shape in found.items() if shape.plain}
            self._stale = False
        return self._shapes

    def _shape(self) -> Shape:
        return self._chance.choice(list(self._tables().values()))

    def _writer(self) -> Rows:
        return Rows(self._chance, self._session, self._shape())

    def _steps(self, statements: list[str]) -> list[Step]:
        self._stale = self._stale or any(s.startswith(_DEFINING) for s in statements)
        online = any(" TABLE " in s and s.rstrip('`"').endswith(_SHADOWS) for s in statements)
        return [
            self._session.step(statement, joined=online and at > 0)
            for at, statement in enumerate(statements)
        ]

    def _sent(self, what: Callable[[Alters], list[str]]) -> list[Step]:
        tables = self._tables()
        alters = Alters(self._chance, self._grammar, self._session, tables, self._schema)
        return self._steps(what(alters))

    def _changed(self) -> list[Step]:
        return self._sent(Alters.change)

    def _created(self) -> list[Step]:
        return self._sent(Alters.create)

    def _new_session(self) -> list[Step]:
        session = random_session(
            self._chance,
            mariadb=self._grammar.mariadb,
            wild=self._wild,
            without=self._grammar.without,
        )
        self._session = session
        return session.statements

    def _rows(self) -> list[Step]:
        return self._steps(self._writer().some())

    def _transaction(self) -> list[Step]:
        statements = ["BEGIN"]
        for number in range(self._chance.choice([2, 3, 5, 10])):
            if self._chance.random() < 0.1:
                statements.append(f"SAVEPOINT s{number % 2}")
            statements += self._writer().some()
            if self._chance.random() < 0.1:
                statements.append(f"ROLLBACK TO s{number % 2}")
        end = "ROLLBACK" if self._chance.random() < 0.05 else "COMMIT"
        return self._steps([*statements, end])

    def _bulk(self) -> list[Step]:
        return self._steps(self._writer().bulk(self._chance.choice([20, 200, 900])))

    def _of_two(self) -> list[Step]:
        other, writer = self._shape(), self._writer()
        make = writer.from_other if self._chance.random() < 0.5 else writer.with_other
        return self._steps(make(other))

    def _with_image(self) -> list[Step]:
        image = self._chance.choice(["MINIMAL", "NOBLOB"])
        statements = [s for _ in range(3) for s in self._writer().with_image(image)]
        return [
            Step(f"SET SESSION binlog_row_image = '{image}'"),
            *self._steps(statements),
            Step("SET SESSION binlog_row_image = 'FULL'"),
        ]

    def _xa(self) -> list[Step]:
        name = f"'x{self._chance.randrange(1000)}'"
        statements = [s for _ in range(3) for s in self._writer().some()]
        ends = [f"XA PREPARE {name}", f"XA COMMIT {name}"]
        if self._chance.random() < 0.4:
            ends = [f"XA COMMIT {name} ONE PHASE"]
        steps = self._steps([f"XA START {name}", *statements, f"XA END {name}", *ends])
        # What is left prepared holds its locks for ever.
        return [steps[0], *(replace(step, joined=True) for step in steps[1:])]

    def _behind(self) -> list[Step]:
        """The pipeline is paused for a while, so that it comes to statements later."""
        self._paused = not self._paused
        return [Step("setl pause" if self._paused else "setl resume")]

    def _load(self) -> list[Step]:
        return [Step(f"setl load {self._shape().name}")]

    def _trigger(self) -> list[Step]:
        """A trigger writes into another table; the row is in the binlog, as any other."""
        first, second = self._shape(), self._shape()
        if first is second or not second.keys:
            return self._rows()
        body = Rows(self._chance, Session(charset="ascii"), second).delete()[0]
        name = self._session.name(first.name)
        trigger = f"CREATE TRIGGER g{self._chance.randrange(1000)} AFTER INSERT ON {name}"
        return self._steps([f"{trigger} FOR EACH ROW {body}"])
