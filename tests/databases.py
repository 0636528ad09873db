"""The database servers of a test run, started when the first test asks for one."""

import os
import sys
from collections import Counter
from contextlib import ExitStack

import pytest

from setl_embedded import MariaDb, MySql
from tests.families import SAME, VARIABLE, Pair
from tests.mysql_servers import drop_new_databases, given_servers, prepare
from tests.other_servers.profiles import PROFILES
from tests.other_servers.stub import OtherServer

GIVEN = os.environ.get(VARIABLE, "")
EACH = [pytest.param(pair, id=str(pair)) for pair in ((Pair.GIVEN,) if GIVEN else SAME)]
"""Parameters for fixtures that stand for one of several things, a database server among them."""

PLAYED = "SETL_TEST_AS"
"""Variable with the name of one of `tests.other_servers.profiles`, such as `MySQL 8.0.21`: servers
of its family are reached by a stub that plays it, which tells at the end what it has refused."""

_WANTED = os.environ.get(PLAYED, "")
_PLAYED = next((each for each in PROFILES if each.name == _WANTED), None)
if _WANTED and _PLAYED is None:
    raise pytest.UsageError(f"{PLAYED}: one of {', '.join(each.name for each in PROFILES)}")

# Most tests begin at a file and an offset. Of MySQL that file is read from its beginning, for the
# GTIDs of the position, and other tests before have written hundreds of megabytes.
_SHORT_BINLOGS = "--max-binlog-size=4M"


class Databases:
    """Two servers of each family at most, and of one family as long as no test asks for more.

    Args:
        folder: for their data.
        given: the text of the variable that names servers of somebody else, "" for none.
    """

    def __init__(self, folder, given=""):
        self._folder = folder
        self._given = given_servers(given)
        self._servers = {}
        self._exit = ExitStack()

    def site(self, pair, number):
        """Site A (0) or B (1) of a pair."""
        family = (pair.a, pair.b)[number]
        if (family, number) not in self._servers:
            self._servers[family, number] = self._started(family, number)
        return self._servers[family, number]

    def _started(self, family, number):
        if self._given:
            server = self._given[number]
            self._exit.callback(drop_new_databases, server, prepare(server))
            return server
        name = f"{family}-{'ab'[number]}"
        server = new_server(
            family,
            self._folder / name,
            name,
            101 + number,
            gtid_domain_id=1 + number,
            options=(_SHORT_BINLOGS,),
        )
        started = self._exit.enter_context(server)
        if _PLAYED is None or _PLAYED.family != family:
            return started
        stub = self._exit.enter_context(OtherServer(_PLAYED, started))
        self._exit.callback(lambda: _report(stub))
        return stub

    def close(self):
        self._exit.close()


def _report(stub):
    # pytest's own capture has ended by then, or is not told of it.
    refused = Counter((number, statement[:120]) for number, statement in stub.refused)
    for (number, statement), times in refused.most_common():
        print(
            f"\n{stub.profile.name} refused {times} times [{number}]: {statement}",
            file=sys.__stderr__,
        )


def new_server(family, folder, name, server_id, **options):
    """A server of a family, not started; options are those of both families."""
    if family == "mysql":
        options.pop("gtid_domain_id", None)  # its GTIDs begin with a UUID
        return MySql(folder, name, server_id, **options)
    return MariaDb(folder, name, server_id, **options)
