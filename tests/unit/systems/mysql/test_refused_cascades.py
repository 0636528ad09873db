"""A table that comes while a pipeline runs, and a source that does not answer then."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from setl.errors import ConfigurationError, TransientError
from setl.systems.mysql.foreign_keys import logs_actions, refuse_cascades
from setl.systems.mysql.server import Outcome

TABLE: Any = SimpleNamespace(schema="shop", table="c", name="shop.c")
CREATED = """CREATE TABLE `c` (
  `p` int,
  CONSTRAINT `f` FOREIGN KEY (`p`) REFERENCES `p` (`id`) ON DELETE CASCADE
)"""


def mysql(native, *channels, outcome=Outcome.DONE):
    return SimpleNamespace(
        variables={"innodb_native_foreign_keys": native},
        mariadb=False,
        version=(9, 7),
        attempt=lambda _: outcome,
        records=lambda _: [{"channel_name": name} for name in channels],
        created_text=lambda *_: CREATED,
    )


@pytest.mark.parametrize(
    ("server", "logs"),
    [
        (mysql("ON"), False),
        (mysql("OFF"), True),
        (mysql("OFF", "group_replication_recovery"), True),
        (mysql("OFF", outcome=Outcome.DENIED), True),
        (mysql("OFF", ""), False),
        (mysql("OFF", "group_replication_recovery", "eu"), False),
    ],
)
def test_a_replica_logs_what_its_source_logs(server, logs):
    assert logs_actions(server) is logs


def test_a_replica_of_who_knows_what_is_refused_with_its_reason():
    with pytest.raises(ConfigurationError, match="this server is a replica"):
        refuse_cascades(cast("Any", mysql("OFF", "")), TABLE, ())
    refuse_cascades(cast("Any", mysql("OFF")), TABLE, ())


def test_a_source_that_does_not_answer_is_asked_again():
    def created_text(*_):
        raise TransientError("the server has gone away")

    server: Any = SimpleNamespace(variables={}, created_text=created_text)
    with pytest.raises(TransientError, match="gone away"):
        refuse_cascades(server, TABLE, ())
    refuse_cascades(server, TABLE, ["foreign-key-action@shop.*"])
