"""Creates indexes before the first document, with a field for each column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from setl.channel.routes.routing import selected_columns
from setl.errors import ConfigurationError
from setl.load.creation import Describe, Description, LoadEnd, NewTable
from setl.load.sink import LoadTicket
from setl.model.schema import Column
from setl.systems.search_index.client import make_client
from setl.systems.search_index.errors import translating
from setl.systems.search_index.load.index import ensure_index
from setl.systems.search_index.port import ClusterEndpoint


class IndexCreation:
    """The `setl.load.creation.TableCreation` of a cluster.

    A leader that is not one any more creates nothing that its successor would not, so there is no
    fence. What templates of the cluster say counts more, see
    `setl.systems.search_index.load.index`.
    """

    def __init__(self, endpoint: ClusterEndpoint) -> None:
        """Connect to nothing yet."""
        self._endpoint = endpoint

    def create(
        self,
        ticket: LoadTicket,  # noqa: ARG002
        tables: Sequence[NewTable],
        describe: Describe,
        latest: Callable[[], LoadEnd] | None = None,  # noqa: ARG002
        will_reload: Callable[[tuple[str, str]], bool] = lambda _: False,  # noqa: ARG002
    ) -> Sequence[str]:
        """See `TableCreation.create`; of several tables in one index each adds its fields.

        What was there before is known by `setl.load.identities`.
        """
        ran: list[str] = []
        with translating(self._endpoint), make_client(self._endpoint) as client:
            names = dict.fromkeys(table.route.target[1] for table in tables)
            missing = {n for n in names if not client.exists(n)}
            for table in tables:
                index = table.route.target[1]
                described = describe(table) if index in missing else None
                if described is not None:
                    columns = _columns(table, described)
                    try:
                        ensure_index(client, index, columns, table.route.geometry)
                    except ConfigurationError as error:
                        raise error.at(table=".".join(table.name)) from None
                    ran.append(f"index {index}, with fields for {'.'.join(table.name)}")
        return ran

    def complete(self, ticket: LoadTicket) -> Sequence[str]:  # noqa: ARG002
        """See `TableCreation.complete`; an index is whole from the start."""
        return ()


def _columns(table: NewTable, described: Description) -> list[Column]:
    """The columns under the names of their fields, as documents are made of them."""
    schema = described.schema
    passing = [
        replace(schema.columns[i], name=name)
        for i, name in selected_columns(table.route, schema.names)
    ]
    return [*passing, *described.computed]
