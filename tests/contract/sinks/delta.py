"""Delta tables in a folder, for the tests of what every sink does."""

from setl.systems.delta.fence import DeltaFence
from setl.systems.delta.location import Location
from setl.systems.delta.sink import DeltaSinkSettings
from tests.delta_tables import create_table, rows_of
from tests.loading import ticket_for


class Target:
    """Tables of its own."""

    def __init__(self, folder, tables):
        self._location = Location(str(folder))
        self.ticket = ticket_for("lake")
        self.fence = DeltaFence(self._location, self.ticket.pipeline_key)
        self.sink = DeltaSinkSettings(self._location).make_sink()
        for table, columns in tables.items():
            create_table(self._location.of_table(("shop", table)), columns)

    def target(self, table):
        return "shop", table

    def rows(self, table, columns):
        return rows_of(self._location.of_table(("shop", table)), columns)
