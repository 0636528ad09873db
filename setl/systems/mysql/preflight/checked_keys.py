"""Foretells whether a pipeline will carry out what a foreign key of the source does."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from setl.channel.file import MysqlTarget
from setl.channel.routes.routing import Router
from setl.codec.sql.created_table import ForeignKey
from setl.model.key_action import Name
from setl.model.schema import RowSchema
from setl.systems.mysql.acting_keys import (
    RelatedTable,
    RelatedTables,
    keys_of,
    parent_of,
    same_key,
    why_not_key,
)
from setl.systems.mysql.catalog import read_table
from setl.systems.mysql.endpoint import mysql_endpoint
from setl.systems.mysql.foreign_keys import WhyNot
from setl.systems.mysql.identifiers import qualified, quote
from setl.systems.mysql.server import Server
from setl.systems.pipeline_check import PipelineCheck

_LETTERS: Final = "rows that the target refuses are put aside (dead letters), and come back later"


class KeysOfCheck:
    """The foreign keys with actions of one check. Asks the target only if there are any."""

    def __init__(self, check: PipelineCheck, router: Router, there: Collection[Name]) -> None:
        """Ask nobody yet.

        Args:
            check: of the pipeline.
            router: its routes.
            there: the source's tables.
        """
        self._check = check
        self._related = RelatedTables(router, there)
        self._target: Server | None = None

    def why_not(
        self, table: RowSchema, key: ForeignKey, others: Sequence[ForeignKey]
    ) -> WhyNot | None:
        """See `CarriedOut`."""
        name = (table.schema, table.table)
        child = self._related.of_source(name)
        parent = self._related.of_source(parent_of(key, name))
        found = self._of_pipeline() or _of_mapping(child, parent)
        return found or self._of_target(child, parent, key, others)

    def _of_pipeline(self) -> WhyNot | None:
        pipeline = self._check.pipeline
        if not self._check.knows_target:
            return WhyNot("the target is not known yet", "Name the target, then check again")
        if not isinstance(pipeline.target, MysqlTarget):
            return WhyNot("the target has no foreign keys")
        if not pipeline.source.reads_origin:
            return WhyNot("the changes do not come from the server's binlog")
        return WhyNot(_LETTERS) if pipeline.stores_dead_letters else None

    def _of_target(
        self,
        child: RelatedTable,
        parent: RelatedTable,
        key: ForeignKey,
        others: Sequence[ForeignKey],
    ) -> WhyNot | None:
        target = self._opened()
        at_target = read_table(target.connection, *parent.target)
        if at_target is None or read_table(target.connection, *child.target) is None:
            return WhyNot(
                "the target has not both tables, and those that setl creates have no foreign keys",
                "Create them at the target by hand, with the source's foreign keys",
            )
        route = parent.route
        own = route.key if route is not None and route.key else ()
        parent_key = own or [at_target.names[i] for i in at_target.key]
        if reason := why_not_key(key, others, parent_key):
            return WhyNot(reason)
        held = keys_of(target, child.target)
        there = [(each, parent_of(each, child.target)) for each in held]
        if any(same_key(key, parent.target, each, of) for each, of in there):
            return None
        columns = ", ".join(map(quote, key.columns))
        referred = ", ".join(map(quote, key.parent_columns))
        return WhyNot(
            "the target's table has not the same foreign key",
            f"Give it to it, at the target: ALTER TABLE {qualified(*child.target)} ADD CONSTRAINT"
            f" {quote(key.name)} FOREIGN KEY ({columns}) REFERENCES {qualified(*parent.target)}"
            f" ({referred}) {' '.join(key.actions)}",
        )

    def _opened(self) -> Server:
        """The target; raises SetlError if it does not answer."""
        if self._target is None:
            target = self._check.pipeline.target
            assert isinstance(target, MysqlTarget)
            self._target = self._check.open.enter_context(Server.opened(mysql_endpoint(target)))
        return self._target


def _of_mapping(child: RelatedTable, parent: RelatedTable) -> WhyNot | None:
    for each in (child, parent):
        if each.why_not:
            return WhyNot(f"{each.name}: {each.why_not}")
    return None
