"""Leaves out updates that change no column that goes to the target."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any

from setl.channel.routes.routing import Route
from setl.model.change import ABSENT, DecodedRows, Op, Row
from setl.model.schema import Kind, RowSchema
from setl.transform.columns import ColumnPlan


class UnchangedRows:
    """Of one route with `Route.skips_unchanged`, for rows of one table."""

    def __init__(self, route: Route) -> None:
        """No schema is known yet."""
        self._route = route
        self._schema: RowSchema | None = None
        self._sent: Callable[[Row], Any] = itemgetter(0)
        self._floating = False

    def left_out(self, decoded: DecodedRows) -> DecodedRows:
        """The same without updates after which the target would be as before.

        One whose images do not say all of it stays.

        Raises:
            ConfigurationError: the columns do not fit the mapping.
        """
        if decoded.op is not Op.UPDATE or decoded.schema.unlogged:
            return decoded
        if decoded.schema is not self._schema:
            plan = ColumnPlan.build(decoded.schema, self._route)
            self._schema, self._sent = decoded.schema, itemgetter(*plan.sources)
            self._floating = any(column.kind is Kind.FLOAT for column in plan.columns)
        return decoded._replace(images=[both for both in decoded.images if self._changes(*both)])

    def _changes(self, before: Row | None, after: Row | None) -> bool:
        if before is None or after is None or ABSENT in before or ABSENT in after:
            return True
        old, new = self._sent(before), self._sent(after)
        if old != new:
            return True
        # 0.0 equals -0.0, which servers keep apart; their texts differ.
        return self._floating and repr(old) != repr(new)
