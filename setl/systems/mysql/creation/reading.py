"""Asks two servers for what a plan of a table needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from setl.channel.routes.routing import Route
from setl.errors import ConfigurationError
from setl.model.schema import Column, RowSchema
from setl.systems.mysql.creation.dialect import Dialect
from setl.systems.mysql.creation.plan import DescribedTable, TablePlan, plan_table
from setl.systems.mysql.creation.versioning import without_versioning
from setl.systems.mysql.server import Server

_COLLATIONS = (
    "SELECT COLUMN_NAME, COLLATION_NAME FROM information_schema.COLUMNS"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLLATION_NAME IS NOT NULL"
)
_DEFAULT = (
    "SELECT TABLE_COLLATION FROM information_schema.TABLES"
    " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
)
_SCHEMAS = "SELECT 1 FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = %s"


@dataclass(frozen=True)
class Planner:
    """Plans tables between two servers.

    Attributes:
        source: where they are.
        target: where they are to be.
    """

    source: Server
    target: Server

    @cached_property
    def _here(self) -> Dialect:
        return Dialect.read(self.source)

    @cached_property
    def _there(self) -> Dialect:
        return Dialect.read(self.target)

    def plan(self, schema: RowSchema, route: Route, computed: Sequence[Column]) -> TablePlan:
        """See `plan_table`.

        Raises:
            ConfigurationError: the target cannot have such a table, or the source has it no more.
            SetlError: a server does not answer.
        """
        name = (schema.schema, schema.table)
        described = describe(self.source, schema)
        try:
            return plan_table(described, route, computed, self._here, self._there)
        except ConfigurationError as error:
            raise error.at(table=".".join(name)) from None

    def has_schema(self, schema: str) -> bool:
        """Whether the target has a schema. Raises SetlError."""
        return bool(self.target.rows(_SCHEMAS, (schema,)))


def describe(server: Server, schema: RowSchema) -> DescribedTable:
    """A table of the source, as its server describes it. Raises SetlError."""
    name = (schema.schema, schema.table)
    text = server.created_text(*name)
    if server.mariadb:
        text = without_versioning(text)
    collations = {str(c).lower(): str(text) for c, text in server.rows(_COLLATIONS, name)}
    default = server.rows(_DEFAULT, name)
    return DescribedTable(schema, text, collations, str(default[0][0]) if default else "")
