"""Creates tables on a MySQL or MariaDB target.

DDL commits by itself, so it is fenced and marked as schema changes are that setl replicates, see
`setl.systems.mysql.ddl.replicating`. Keys that can come after the rows are written down in
``retl.setl_ddl`` before their table is made: who finds them there adds them. They are not told
from a comparison with the source, since a key may be missing because somebody has dropped it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final

import pymysql

from setl import failpoints
from setl.codec.sql.tokens import TokenKind, tokenize
from setl.errors import (
    ConfigurationError,
    FatalError,
    SetlError,
    TargetReplacedError,
    TransientError,
)
from setl.load.creation import Describe, LoadEnd, NewTable
from setl.load.sink import LoadTicket
from setl.model.session import StatementSession
from setl.systems.mysql.catalog import OWN_SCHEMA, folds_names
from setl.systems.mysql.connection import MysqlEndpoint, error_number, translate
from setl.systems.mysql.creation.plan import TablePlan, added_keys
from setl.systems.mysql.creation.reading import Planner
from setl.systems.mysql.ddl.runner import DdlRunner
from setl.systems.mysql.ddl.table_records import (
    CreatedTables,
    ExistingTables,
    Name,
    PendingIndexes,
    TableKeys,
)
from setl.systems.mysql.foreign_keys import refuse_cascades
from setl.systems.mysql.identifiers import quote
from setl.systems.mysql.load.writer import Writer
from setl.systems.mysql.server import Server

_LOCK_WAIT: Final = 10
_ATTEMPTS: Final = 5
_TABLE_EXISTS: Final = 1050
_CHECK_EXISTS: Final = 3822  # their names are those of a schema, to MySQL

# Nothing is cut or replaced in silence; zero dates may be defaults.
_STRICT: Final = (
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ALLOW_INVALID_DATES,NO_ENGINE_SUBSTITUTION'",
)

_TABLE: Final = (
    "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_KEYS: Final = (
    "SELECT DISTINCT INDEX_NAME FROM information_schema.STATISTICS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_TABLES: Final = (
    "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA IN %s"
)


class MysqlTableCreation:
    """The `setl.load.creation.TableCreation` of a MySQL target."""

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        source: MysqlEndpoint,
        mark: int,
        nonce: Callable[[], str],
        *,
        marked: bool,
        accept: Sequence[str] = (),
    ) -> None:
        """Connect to nothing yet.

        Args:
            endpoint: the target.
            source: the server that the tables are read from.
            mark: the channel's number, which statements carry in a comment (I10).
            nonce: see `setl.systems.mysql.stored.marks.mark_info`.
            marked: whether the target is also read by the channel.
            accept: see `setl.systems.port.DdlReplicationContext`.
        """
        self._endpoint, self._source = endpoint, source
        self._mark, self._nonce = mark, nonce
        self._schema = OWN_SCHEMA if marked else None
        self._accept = accept

    def create(
        self,
        ticket: LoadTicket,
        tables: Sequence[NewTable],
        describe: Describe,
        latest: Callable[[], LoadEnd] | None = None,
        will_reload: Callable[[Name], bool] = lambda _: False,
    ) -> Sequence[str]:
        """See `TableCreation.create`."""
        wanted = {table.route.target for table in tables}
        if not wanted:
            return ()
        ran: list[str] = []
        with closing(Writer(self._endpoint, _LOCK_WAIT)) as writer:
            missing = self._missing(writer, tables)
            there = wanted - {table.route.target for table in missing}
            with self._translating(ticket):
                known = ExistingTables(writer.open(), ticket).among(wanted)
                lost = [table for table in missing if table.route.target in known]
                _refuse_lost(lost, ticket, will_reload)
            if missing:
                for target, statements in self._made(writer, ticket, missing, describe, latest):
                    there.add(target)
                    ran += statements
            if new := there - known:
                with self._translating(ticket), _Fenced(writer, ticket, self._mark, self._nonce):
                    ExistingTables(writer.open(), ticket).write(sorted(new))
        return ran

    def _made(
        self,
        writer: Writer,
        ticket: LoadTicket,
        missing: Sequence[NewTable],
        describe: Describe,
        latest: Callable[[], LoadEnd] | None,
    ) -> Sequence[tuple[Name, Sequence[str]]]:
        """Make tables; returns those that are there now, each with the statements that ran."""
        with self._translating(ticket), closing(DdlRunner(self._endpoint, self._schema)) as runner:
            runner.open(ticket)
            work = _Work(ticket, writer, runner, self._mark, self._nonce)
            with (
                Server.opened(self._source) as source,
                Server.opened(self._endpoint) as target,
            ):
                planner = Planner(source, target)
                return [
                    (plan.target, work.create(planner, plan, position, later=table.loaded))
                    for table in missing
                    for plan, position in self._planned(planner, table, describe, latest)
                ]

    def complete(self, ticket: LoadTicket) -> Sequence[str]:
        """See `TableCreation.complete`."""
        with self._translating(ticket), closing(Writer(self._endpoint, _LOCK_WAIT)) as writer:
            stored = PendingIndexes(writer.open(), ticket).all()
            if not stored:
                return ()
            with closing(DdlRunner(self._endpoint, self._schema)) as runner:
                runner.open(ticket)
                work = _Work(ticket, writer, runner, self._mark, self._nonce)
                return [ran for keys in stored for ran in work.add_keys(keys)]

    def _missing(self, writer: Writer, tables: Sequence[NewTable]) -> list[NewTable]:
        """The first table of each target that is not there."""
        wanted: dict[tuple[str, str], NewTable] = {}
        for table in tables:
            wanted.setdefault(table.route.target, table)
        if not wanted:
            return []
        with self._translating(None), writer.open().cursor() as cursor:
            fold = str.lower if folds_names(writer.open()) else str
            cursor.execute(_TABLES, ([schema for schema, _ in wanted],))
            there = {(fold(str(s)), fold(str(t))) for s, t in cursor.fetchall()}
        return [t for (s, n), t in wanted.items() if (fold(s), fold(n)) not in there]

    def _planned(
        self,
        planner: Planner,
        table: NewTable,
        describe: Describe,
        latest: Callable[[], LoadEnd] | None,
    ) -> list[tuple[TablePlan, LoadEnd | None]]:
        """A table's plan, and the position at which the source's is like it.

        Empty if it is gone.
        """
        before: TablePlan | None = None
        position: LoadEnd | None = None
        for _ in range(_ATTEMPTS):
            described = describe(table)
            if described is None:
                return []
            plan = planner.plan(described.schema, table.route, described.computed)
            if latest is None or plan == before:
                refuse_cascades(planner.source, described.schema, self._accept)
                return [(plan, position)]
            before, position = plan, latest()
        raise TransientError(f"the table {'.'.join(table.name)} is altered again and again")

    def _translating(self, ticket: LoadTicket | None) -> _Translating:
        return _Translating(self._endpoint, ticket)


def _refuse_lost(
    lost: Sequence[NewTable], ticket: LoadTicket, will_reload: Callable[[Name], bool]
) -> None:
    """Refuse to make these tables once more, unless their rows come again."""
    gone = [t.route.target for t in lost if not t.loaded and not will_reload(t.route.target)]
    if not gone:
        return
    names = ", ".join(map(".".join, gone))
    channel = ticket.leadership.channel
    key = ticket.pipeline_key
    raise TargetReplacedError(
        f"gone from the target, where this pipeline had found or made it before: {names}. Rows do"
        " not come again by themselves",
        hint=f"`setl load {key} --no-wait` loads tables again; name all that go there, or none. "
        f"Then"
        f" `setl start {channel}`. To have it made without rows: `setl stop {channel}`, and `setl"
        f" position reset {key} --to` the position under `resume` in `setl position show {key}`",
    )


class _Translating:
    """Translates pymysql's errors, and says where they are from."""

    def __init__(self, endpoint: MysqlEndpoint, ticket: LoadTicket | None) -> None:
        self._position: dict[str, Any] = {"server": endpoint}
        if ticket is not None:
            self._position["pipeline"] = ticket.pipeline_key

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pymysql.MySQLError | OSError):
            raise translate(error).at(**self._position) from error
        if isinstance(error, SetlError):
            error.at(**self._position)


class _Work:
    """Statements on behalf of one leadership, over connections that are open."""

    def __init__(
        self,
        ticket: LoadTicket,
        writer: Writer,
        runner: DdlRunner,
        mark: int,
        nonce: Callable[[], str],
    ) -> None:
        self._ticket, self._writer, self._runner = ticket, writer, runner
        self._mark, self._nonce = mark, nonce

    def create(
        self, planner: Planner, plan: TablePlan, position: LoadEnd | None, *, later: bool
    ) -> list[str]:
        """Create a table; returns the statements that ran."""
        keys = plan.later if later else ()
        ran: list[str] = []
        # Also if there are none: whoever creates a table is looked at first (I2).
        with self._stored() as stored:
            stored.write(TableKeys(plan.target, keys))
            if position is not None:
                CreatedTables(self._writer.open(), self._ticket).write(plan.target, position)
        failpoints.reached("create.begun")
        if not planner.has_schema(plan.target[0]):
            ran.append(f"CREATE DATABASE IF NOT EXISTS {quote(plan.target[0])}")
            self._run(ran[-1], plan)
        statement = plan.statement(whole=not keys)
        try:
            try:
                self._run(statement, plan)
            except pymysql.MySQLError as error:
                if error_number(error) != _CHECK_EXISTS:
                    raise
                # The table had another name before, which it still has here: the stream will bring
                # the RENAME, for which this one makes room.
                statement = plan.without_check_names().statement(whole=not keys)
                self._run(statement, plan)
        except pymysql.MySQLError as error:
            if error_number(error) != _TABLE_EXISTS:
                raise self._refused(statement, error) from error
            with self._stored() as stored:  # somebody else has made it, keys and all
                stored.forget(plan.target)
                CreatedTables(self._writer.open(), self._ticket).forget(plan.target)
            return ran
        failpoints.reached("create.made")
        return [*ran, statement]

    def add_keys(self, wanted: TableKeys) -> list[str]:
        """Add those keys that the table has not; returns the statements that ran."""
        with self._stored():
            pass  # compares the epoch, now that the lock was taken
        ran: list[str] = []
        there = self._key_names(wanted.table)
        keys = [key for key in wanted.keys if there is not None and _name(key) not in there]
        if keys:
            ran.append(added_keys(wanted.table, keys))
            id_ = PendingIndexes(self._writer.open(), self._ticket).id_of(wanted.table)
            try:
                self._run(ran[0])
            except pymysql.MySQLError as error:
                where = f"pipeline = '{self._ticket.pipeline_key}' AND id = '{id_}'"
                failure = self._refused(ran[0], error)
                failure.hint = (
                    "Add the keys by hand as far as they are wanted, then run on the target:"
                    f" DELETE FROM retl.setl_ddl WHERE {where}; and start again"
                )
                raise failure from error
        failpoints.reached("create.keys")
        with self._stored() as stored:
            stored.forget(wanted.table)
        return ran

    def _key_names(self, table: tuple[str, str]) -> frozenset[str] | None:
        """Names in lower case of the keys that a table has, None if it is gone."""
        with self._writer.open().cursor() as cursor:
            cursor.execute(_TABLE, table)
            if cursor.fetchone() is None:
                return None
            cursor.execute(_KEYS, table)
            return frozenset(str(name).lower() for (name,) in cursor.fetchall())

    def _run(self, statement: str, plan: TablePlan | None = None) -> None:
        try:
            self._runner.run(f"/*setl:{self._mark}*/ {statement}", StatementSession(), _STRICT)
        except SetlError as error:
            if plan is not None:
                error.at(table=".".join(plan.target))
            raise

    def _refused(self, statement: str, error: pymysql.MySQLError) -> SetlError:
        failure = translate(error)
        if isinstance(failure, TransientError):
            return failure
        if isinstance(failure, ConfigurationError):
            return failure
        return FatalError(
            f"the target refuses to create a table: {failure.message}: {statement[:2000]}",
            hint="Create the table by hand, with what the mapping needs; `setl check` then says"
            " whether rows fit",
        )

    def _stored(self) -> _Fenced:
        return _Fenced(self._writer, self._ticket, self._mark, self._nonce)


class _Fenced:
    """A fenced and marked transaction about kept keys."""

    def __init__(
        self, writer: Writer, ticket: LoadTicket, mark: int, nonce: Callable[[], str]
    ) -> None:
        self._writer, self._ticket, self._mark, self._nonce = writer, ticket, mark, nonce

    def __enter__(self) -> PendingIndexes:
        self._writer.register(self._ticket)
        self._writer.begin(self._ticket, self._mark, self._nonce())
        return PendingIndexes(self._writer.open(), self._ticket)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self._writer.open().commit()
        else:
            self._writer.rollback()


def _name(key: str) -> str:
    """The name of a key by its definition, in lower case."""
    token = next(t for t in tokenize(key) if t.kind is TokenKind.NAME)
    return token.name.lower()
