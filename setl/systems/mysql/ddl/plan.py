"""Plans the target's statements for a schema change of the source.

Names of tables are replaced where they stand, and everything else of the text stays as it is. What
cannot be replicated without a guess is refused, with an error that says so: the pipeline stops
there, and a person decides.

A table that a shadow replaces (see `setl.channel.names.shadow_tables`) is not renamed on
the target, which has no shadow: what was done to the shadow is done to the table instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol
from zlib import crc32

from setl.channel.names.shadow_tables import DROPPED_PREFIX, Shadow, ShadowPart
from setl.channel.routes.routing import Route
from setl.codec.sql.statement import table_ddl
from setl.codec.sql.table_ddl import Action, Role, TableDdl, TableName
from setl.codec.sql.tokens import tokenize
from setl.errors import FatalError
from setl.model.session import StatementSession
from setl.systems.mysql.ddl.advice import LOAD_AFTER, not_replicated
from setl.systems.mysql.ddl.left_out import narrowed
from setl.systems.mysql.ddl.mapping_limits import refuse_columns, refuse_removal
from setl.systems.mysql.ddl.moved_rows import refuse_moves
from setl.systems.mysql.ddl.table_state import Name
from setl.systems.mysql.identifiers import qualified

# What a person does; `{by_hand}` stands for how.
_WITHOUT_IT: Final = "Make the change on the target{by_hand}, without what names other tables"
_LEAVES: Final = (
    "If its rows are to go on, map the new name in the channel file, `setl apply` it, and `setl"
    " start` the channel. Else rename or drop the table at the target{by_hand}"
)
_EACH: Final = "Do it to each table of the target{by_hand}, as it shall be there"


_CHANGED: Final = frozenset({Role.SUBJECT, Role.NEW_NAME, Role.OTHER})


class Routing(Protocol):
    """Where tables go; `setl.channel.routes.routing.Router` is it."""

    def route(self, schema: str, table: str) -> tuple[Route, ...]:
        """The routes of a table, none if it is not mapped."""
        ...

    def maps(self, schema: str) -> bool:
        """Whether tables of a schema are mapped."""
        ...

    def may_fill(self, schema: str, target: Name) -> bool:
        """Whether some table of a schema may go to a target."""
        ...

    def gathers(self, route: Route) -> bool:
        """Whether rows of other tables may go where a route leads."""
        ...

    def shadow(self, schema: str, table: str) -> Shadow | None:
        """The mapped table whose online schema change a table belongs to."""
        ...


class Step(NamedTuple):
    """One statement for the target.

    Attributes:
        statement: its text.
        tables: the target's tables that it changes, makes or removes.
        may_lack: whether it is as good as done if a table is not there.
        source: the source's table, of a statement that may do something to rows.
        whole: whether the target has all rows of that table, as they are.
        renames_away: whether it renames the first of the tables, to be dropped under the new name.
        copied: whether it was run on an empty shadow of the table, which rows were copied into.
        reread: tables of the source whose rows are read there (`read: source`), and which it alters
            or renames.
        creation: the CREATE TABLE of a shadow, where the statement only stands for what is to be
            done, see `setl.systems.mysql.ddl.shadow_definition`.
        aside: new names of tables that leave the mapping, see `table_records.SetAside`.
        notes: what was taken out of it, see `setl.systems.mysql.ddl.left_out`; with no statement,
            all that there was.
        narrowed: whether the target need not have all keys of the source's table.
        gathered: whether rows of other tables may be in the target's.
        session: that in which it was run at the source.
    """

    statement: str
    tables: tuple[Name, ...]
    may_lack: bool = False
    source: Name | None = None
    whole: bool = False
    renames_away: bool = False
    copied: bool = False
    reread: tuple[Name, ...] = ()
    creation: TableDdl | None = None
    aside: tuple[Name, ...] = ()
    notes: tuple[str, ...] = ()
    narrowed: bool = False
    gathered: bool = False
    session: StatementSession = StatementSession()

    @property
    def ddl(self) -> TableDdl | None:
        """The statement as it is read; None if it is not about tables."""
        return table_ddl(self.statement, self.session)


class Swap(NamedTuple):
    """A shadow replaces a table.

    Attributes:
        shadow: the shadow, at the source.
        table: the table, at the source.
    """

    shadow: Name
    table: Name


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done.

    Attributes:
        steps: statements for the target, in order.
        keep: a shadow that the statement changes; it is kept until the swap.
        created: whether it creates that shadow, so that what was kept before is of another one.
        swaps: shadows that take a table's place.
        forget: shadows that are gone without that.
    """

    steps: tuple[Step, ...] = ()
    keep: Name | None = None
    created: bool = False
    swaps: tuple[Swap, ...] = ()
    forget: tuple[Name, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is nothing to do: it is about none of the pipeline's tables."""
        return not (self.steps or self.keep or self.swaps or self.forget)


def plan_ddl(
    ddl: TableDdl,
    routing: Routing,
    *,
    marked_drops: bool = False,
    shadows: Collection[Name] = (),
    aside: Container[Name] = (),
) -> Plan:
    """What a statement becomes.

    Args:
        ddl: the statement.
        routing: the pipeline's tables.
        shadows: the shadows of which statements are kept.
        aside: tables of the target that `Step.aside` has named.
        marked_drops: whether a DROP TABLE must be recognised in the target's binlog. Servers write
            it there without its comment, so the table is first renamed, with a comment, to a name
            that no pipeline minds.
    """
    if ddl.action is Action.DROP:
        return _drop(ddl, routing, aside, marked=marked_drops)
    changing = under_way(routing, shadows)
    if ddl.action is Action.RENAME:
        return _rename(ddl, routing, changing, marked_drops=marked_drops)
    subject = ddl.subjects[0]
    shadow = routing.shadow(subject.schema, subject.table)
    moved = next((n for n in ddl.names if n.role is Role.NEW_NAME), None)
    if moved is not None and (shadow or not routing.route(moved.schema, moved.table)):
        # ALTER TABLE t RENAME _t_del is the first half of a swap in two steps.
        return _pairs([(subject, moved)], routing, ddl, changing, marked_drops=marked_drops)
    if shadow is None:
        return Plan(tuple(rewritten(ddl, routing, marked_drops=marked_drops)))
    if shadow.part is not ShadowPart.NEXT or ddl.action is Action.TRUNCATE:
        return Plan()
    name = (subject.schema, subject.table)
    return Plan(keep=name, created=ddl.action is Action.CREATE)


def rewritten(
    ddl: TableDdl,
    routing: Routing,
    stands_for: Mapping[Name, Name] | None = None,
    *,
    marked_drops: bool = False,
) -> Iterable[Step]:
    """The statement for each target of its subject, names replaced.

    Args:
        ddl: CREATE, ALTER, TRUNCATE or an index statement.
        routing: the pipeline's tables.
        stands_for: tables of the source that are meant where a statement names others.
        marked_drops: see `plan_ddl`.
    """
    aliases = stands_for or {}

    def routes_of(name: TableName) -> tuple[Route, ...]:
        return routing.route(*aliases.get((name.schema, name.table), (name.schema, name.table)))

    subject = ddl.subjects[0]
    others = [name for name in ddl.names if name is not subject]
    routes = routes_of(subject)
    if ddl.with_rows and routes:
        raise _refused("CREATE TABLE … SELECT is in no binlog of row changes", ddl, LOAD_AFTER)
    for name in others:
        into = routes_of(name)
        if name.role is Role.OTHER and (routes or into):
            refuse_moves(ddl, routes, into, routing.gathers, both_ways=marked_drops)
    if not routes:
        _refuse_others(ddl, others, routes_of, mapped=False)
    for route in routes:
        mine, notes = narrowed(ddl, route)
        if mine is None:
            yield Step("", (route.target,), notes=notes)
            continue
        others = [name for name in mine.names if name.role is not Role.SUBJECT]
        _refuse_others(mine, others, routes_of, mapped=True)
        refuse_columns(mine, route)
        gathers = routing.gathers(route)
        refuse_removal(mine, route, gathers=gathers)
        replaced = [(subject, route.target)]
        replaced += [(name, _beside(route, routes_of(name), mine)) for name in others]
        # A table may be renamed to what it is called.
        named = {(n.schema, n.table): to for n, to in replaced if n.role in _CHANGED}
        changed = tuple(named.values())
        if len(set(changed)) < len(changed):
            yield _stays_by_rename(ddl, route.target)
            continue
        if gathers and any(name.role is Role.NEW_NAME for name in others):
            raise _gathered(route.target, ddl)
        may_lack = ddl.conditional and ddl.action is not Action.CREATE
        text = _replaced(mine.text, replaced)
        if ddl.replaces and marked_drops:
            # A server that fails after it has dropped the table logs that without the mark. So
            # the table is renamed first, which is marked, and only then comes the new one.
            yield _rename_away(route.target, may_lack=True)
            text = _without_replace(text)
        name = (subject.schema, subject.table)
        source = aliases.get(name, name)
        reread = (source,) if route.rereads else ()
        yield Step(
            text, tuple(changed), may_lack, source, route.plain and not gathers, reread=reread,
            notes=notes, narrowed=route.include is not None or bool(route.exclude),
            gathered=gathers,
        )  # fmt: skip
        if ddl.replaces and marked_drops:
            yield _drop_renamed(route.target)


def _stays_by_rename(ddl: TableDdl, target: Name) -> Step:
    """What a statement about two tables becomes that are one at the target; raises FatalError."""
    if ddl.action is not Action.ALTER or [c.words[0] for c in ddl.clauses()] != ["RENAME"]:
        raise _refused("both of its tables are one at the target", ddl, _EACH)
    return _stays_in(target)


def _refuse_others(
    ddl: TableDdl,
    others: Sequence[TableName],
    routes_of: Callable[[TableName], Sequence[Route]],
    *,
    mapped: bool,
) -> None:
    """Refuse a statement that names other tables which do not go where its own goes.

    Those that it moves rows to or from are looked at before.
    """
    for name in others:
        into = bool(routes_of(name))
        if name.role is Role.NEW_NAME and into and not mapped:
            why = f"it brings rows into the mapped table {_said(name)}"
            raise _refused(why, ddl, LOAD_AFTER)
        if mapped and not into:
            hint = _LEAVES if name.role is Role.NEW_NAME else _WITHOUT_IT
            raise _refused(f"it names {_said(name)}, which is not mapped", ddl, hint)


def _beside(route: Route, routes: Sequence[Route], ddl: TableDdl) -> Name:
    """Which of a table's targets goes together with a route of another table."""
    same = [r.target for r in routes if r.index == route.index]
    if same or len(routes) == 1:
        return same[0] if same else routes[0].target
    why = "its tables go to several targets, and which belong together is open"
    raise _refused(why, ddl, _EACH)


def under_way(routing: Routing, shadows: Iterable[Name]) -> set[Name]:
    """The tables of which these are shadows that can take their places."""
    found = ((schema, routing.shadow(schema, table)) for schema, table in shadows)
    return {(schema, s.table) for schema, s in found if s and s.part is ShadowPart.NEXT}


def _drop(ddl: TableDdl, routing: Routing, aside: Container[Name], *, marked: bool) -> Plan:
    steps: list[Step] = []
    forget: list[Name] = []
    for name in ddl.subjects:
        shadow = routing.shadow(name.schema, name.table)
        if shadow is not None:
            forget.append((name.schema, name.table))
            for route in routing.route(name.schema, shadow.table):
                former = (route.target[0], name.table)
                if former in aside:
                    steps += _dropped(former, ddl, may_lack=True, marked=marked)
            continue
        for route in routing.route(name.schema, name.table):
            # Servers log a DROP of several tables also if one of them was not there.
            may_lack = ddl.conditional or len(ddl.subjects) > 1
            refuse_removal(ddl, route, gathers=routing.gathers(route))
            steps += _dropped(route.target, ddl, may_lack=may_lack, marked=marked)
    return Plan(tuple(steps), forget=tuple(forget))


def _dropped(target: Name, ddl: TableDdl, *, may_lack: bool, marked: bool) -> Iterable[Step]:
    if not marked:
        lenient = ddl.conditional or ddl.action is not Action.DROP
        condition = "IF EXISTS " if lenient else ""
        yield Step(f"DROP TABLE {condition}{qualified(*target)}", (target,), may_lack)
        return
    yield _rename_away(target, may_lack=may_lack)
    yield _drop_renamed(target)


def _rename_away(target: Name, *, may_lack: bool) -> Step:
    gone = _gone(target)
    text = f"RENAME TABLE {qualified(*target)} TO {qualified(*gone)}"
    return Step(text, (target, gone), may_lack, renames_away=True)


def _drop_renamed(target: Name) -> Step:
    gone = _gone(target)
    return Step(f"DROP TABLE IF EXISTS {qualified(*gone)}", (gone,))


def _gone(target: Name) -> Name:
    return target[0], f"{DROPPED_PREFIX}{crc32(target[1].encode()):08x}"


def _without_replace(text: str) -> str:
    """CREATE OR REPLACE as CREATE; names in it were replaced, so that its tokens moved."""
    first = {token.word: token for token in reversed(tokenize(text)[:3])}
    return text[: first["OR"].start] + text[first["REPLACE"].end + 1 :]


def _rename(
    ddl: TableDdl, routing: Routing, changing: Collection[Name], *, marked_drops: bool
) -> Plan:
    names = list(ddl.names)
    pairs = list(zip(names[::2], names[1::2], strict=True))
    return _pairs(pairs, routing, ddl, changing, marked_drops=marked_drops)


def _pairs(
    pairs: Sequence[tuple[TableName, TableName]],
    routing: Routing,
    ddl: TableDdl,
    changing: Collection[Name],
    *,
    marked_drops: bool,
) -> Plan:
    """Renamings from left to right, each of one table."""
    coming = under_way(routing, ((old.schema, old.table) for old, _ in pairs))
    renaming = _Renaming(routing, ddl, {*changing, *coming}, marked_drops=marked_drops)
    ddl_context = {(old.schema, old.table) for old, _ in pairs[1:]}
    for old, new in pairs:
        renaming.add((old.schema, old.table), (new.schema, new.table), ddl_context)
    return renaming.plan()


class _Renaming:
    """Collects what renamings become."""

    def __init__(
        self, routing: Routing, ddl: TableDdl, changing: Collection[Name], *, marked_drops: bool
    ) -> None:
        self._routing = routing
        self._ddl = ddl
        self._changing = changing
        self._marked_drops = marked_drops
        self._between: dict[Name, tuple[Name, ...]] = {}  # held for a moment → at the target
        self._lanes: dict[int, list[tuple[Name, Name]]] = {}
        self._drops: list[Step] = []
        self._swaps: list[Swap] = []
        self._reread: list[Name] = []
        self._aside: list[Name] = []
        self._notes: list[Step] = []

    def add(self, old: Name, new: Name, ddl_context: set[Name]) -> None:
        """Take in the next one; `ddl_context` are names that a later one takes a table from."""
        olds, news = self._targets(old), self._targets(new)
        leaving, coming = self._routing.shadow(*old), self._routing.shadow(*new)
        if coming is not None and olds:
            if coming.part is ShadowPart.FORMER and coming.table == old[1]:
                if old not in self._changing:
                    self._refuse_gathered(old)
                    self._aside += (former := [(schema, new[1]) for schema, _ in olds])
                    self._move(olds, former)
                return  # or the table makes room for its shadow
            why = f"{_dotted(old)} becomes a table of an online schema change of another one"
            raise _refused(why, self._ddl, _LEAVES)
        if leaving is not None:
            self._from_shadow(old, leaving, new)
        elif olds and new[1].startswith(DROPPED_PREFIX):
            self._refuse_gathered(old)
            for target in olds:
                self._drops += _dropped(target, self._ddl, may_lack=True, marked=self._marked_drops)
        elif olds and not news and new in ddl_context:
            self._refuse_gathered(old)
            self._between[new] = tuple((schema, new[1]) for schema, _ in olds)
            self._move(olds, self._between[new])
        elif olds and self._stays(old, new):
            self._notes += (_stays_in(target) for target in olds)
        elif olds and news:
            self._refuse_gathered(old)
            self._reread += [old for route in self._routing.route(*old) if route.rereads]
            self._move(olds, news)
        elif olds:
            why = f"{_dotted(old)} is mapped, and {_dotted(new)} is not"
            raise _refused(why, self._ddl, _LEAVES)
        elif news:
            raise _refused(
                f"{_dotted(old)} is not mapped, and {_dotted(new)} is: its rows are not at the"
                " target",
                self._ddl,
                LOAD_AFTER,
            )

    def plan(self) -> Plan:
        """What all of them become."""
        steps: list[Step] = []
        for moves in self._lanes.values():
            text = ", ".join(f"{qualified(*a)} TO {qualified(*b)}" for a, b in moves)
            tables = tuple(dict.fromkeys(name for move in moves for name in move))
            reread = tuple(dict.fromkeys(self._reread))
            aside = tuple(name for name in self._aside if name in tables)
            may_lack = self._ddl.conditional
            text = f"RENAME TABLE {text}"
            steps.append(Step(text, tables, may_lack, reread=reread, aside=aside))
        return Plan(tuple(steps + self._drops + self._notes), swaps=tuple(self._swaps))

    def _refuse_gathered(self, old: Name) -> None:
        """Refuse to move a table of the target that rows of other tables go to."""
        for route in self._routing.route(*old):
            if self._routing.gathers(route):
                raise _gathered(route.target, self._ddl)

    def _stays(self, old: Name, new: Name) -> bool:
        """Whether a table's rows go on to where they are."""
        before, after = self._routing.route(*old), self._routing.route(*new)
        return len(before) == len(after) and all(
            a.target == b.target and not a.rereads and (a.index == b.index or (a.plain and b.plain))
            for a, b in zip(before, after, strict=True)
        )

    def _targets(self, name: Name) -> tuple[Name, ...]:
        held = self._between.get(name)
        return held or tuple(r.target for r in self._routing.route(*name))

    def _from_shadow(self, old: Name, shadow: Shadow, new: Name) -> None:
        if shadow.part is ShadowPart.NEXT and new == (old[0], shadow.table):
            self._swaps.append(Swap(old, new))
        elif self._routing.route(*new):
            raise _refused(
                f"{_dotted(old)}, which has no counterpart at the target, becomes {_dotted(new)}",
                self._ddl,
                LOAD_AFTER,
            )

    def _move(self, olds: Sequence[Name], news: Sequence[Name]) -> None:
        if len(olds) != len(news) or set(olds) & set(news):
            raise _refused(
                "its tables go to several targets, and which belong together is open",
                self._ddl,
                _EACH,
            )
        for lane, move in enumerate(zip(olds, news, strict=True)):
            self._lanes.setdefault(lane, []).append(move)


def _stays_in(target: Name) -> Step:
    note = f"rows go to {_dotted(target)} under either name"
    return Step("", (target,), notes=(note,))


def _gathered(target: Name, ddl: TableDdl) -> FatalError:
    return _refused(
        f"it moves rows of a table that go to {_dotted(target)}, where rows of other tables go,"
        " too, and does not say which",
        ddl,
        f"Remove those that came from this table from {_dotted(target)} with DELETE{{by_hand}}. If"
        " the table is mapped under its new name, load it with `setl load --replace` when the"
        " pipeline runs again",
    )


def _replaced(text: str, names: Sequence[tuple[TableName, Name]]) -> str:
    for name, to in sorted(names, key=lambda pair: pair[0].start, reverse=True):
        text = text[: name.start] + qualified(*to) + text[name.end :]
    return text


def _said(name: TableName) -> str:
    return _dotted((name.schema, name.table))


def _dotted(name: Name) -> str:
    return f"{name[0]}.{name[1]}"


def _refused(why: str, ddl: TableDdl, hint: str) -> FatalError:
    return not_replicated(why, ddl.text, hint)
