"""Connections of former leaders are ended, unless they commit: a full disk has that wait."""

import pytest

from setl.systems.mysql.locks import ddl_lock
from setl.systems.mysql.stored import writers

HELD = 7


class FakeServer:
    """A server with one connection, which holds whatever user lock is asked for."""

    def __init__(self, state):
        self.statements = []
        self.use_unicode = True
        self._state = state

    def cursor(self, _=None):
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, sql, args=None):
        self.statements.append(sql % args if args else sql)

    def fetchone(self):
        return (HELD,)

    def fetchall(self):
        return [(HELD, "retl", "h:1", None, "Query", 30, self._state, "COMMIT")]


ENDS = {
    "writer": lambda server: writers.end_writer(server, "shop/ab", HELD),
    "schema change": lambda server: ddl_lock.end_holder(server, "shop/ab"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(
    ("state", "killed"),
    [
        ("waiting for handler commit", False),
        ("Commit", False),
        ("Waiting for someone to free space", False),
        ("Waiting for prior transaction to commit", False),
        ("Updating", True),
        ("Waiting for semi-sync ACK from slave", True),
        (None, True),
    ],
)
def test_what_commits_is_not_killed(end, state, killed):
    server = FakeServer(state)
    end(server)
    assert ("KILL CONNECTION 7" in server.statements) is killed
