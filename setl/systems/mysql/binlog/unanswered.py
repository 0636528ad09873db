"""Questions about a binlog that a server does not answer, since a commit waits for its disk.

A server locks its binlog for such a question. While a commit waits for room on the disk, it is not
answered, and waits on at the server when whoever asked has gone: its connection stays, and cannot
be ended. So nothing is asked then. Else there would be no connection left to anybody after some
hours.

A commit of a semi-synchronous source waits for a replica in the same way. MySQL answers meanwhile
(seen with 9.7). MariaDB 10.11 does not once a second commit waits behind the first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from pymysql.connections import Connection

from setl.errors import TransientError
from setl.systems.mysql.connection import MysqlEndpoint, is_mariadb
from setl.systems.mysql.process_list import Process, processes
from setl.systems.mysql.stored.writers import is_commit

# MySQL 9.7 and MariaDB 10.11; MySQL answers the last one.
_OF_BINLOG = ("SHOW BINARY LOG", "SHOW MASTER ", "FLUSH BINARY ", "SHOW BINLOG ")
_FOR_REPLICA = "semi-sync ack"  # in the state of a commit that a replica has not confirmed
_PATIENCE = 5.0  # seconds; an answer takes milliseconds
# A statement that took long before it commits looks as if its commit did: so it is looked at again.
_LOOKS = (0.1, 0.4, 1.0, 1.5, 2.0)  # seconds between them; `_PATIENCE` in all

_answered: dict[tuple[str, int], float] = {}  # by address of a server, see `answered`


def refuse_unanswered(
    connection: Connection[Any],
    endpoint: MysqlEndpoint,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """See that a question about the binlog would be answered; takes 5 s at most.

    The server is not asked if it has answered one in the last 5 s: a commit that hangs has not done
    so for longer, and would not be told from others yet. pymysql's errors pass through.

    Args:
        connection: to the server that is to be asked.
        endpoint: where that is, for errors.
        wait: waits for so many seconds.

    Raises:
        TransientError: it would not; says who waits.
    """
    if time.monotonic() - _answered.get(_address(endpoint), -_PATIENCE) < _PATIENCE:
        return
    held = _held(connection, endpoint)
    for seconds in _LOOKS:
        if not held:
            return
        if any(process.statement.upper().startswith("COMMIT") for process in held.values()):
            break  # it has done nothing else before
        wait(seconds)
        now = _held(connection, endpoint)
        held = {i: now[i] for i in held if i in now and now[i].statement == held[i].statement}
    for process in held.values():
        raise _refusal("a commit waits", process, endpoint, _reason(processes(connection)))


def answered(endpoint: MysqlEndpoint, begun: float) -> None:
    """A server has answered a question about its binlog.

    Args:
        endpoint: the server.
        begun: when it was asked, by `time.monotonic`; no commit was in the way at some time since.
    """
    _answered[_address(endpoint)] = begun


def _address(endpoint: MysqlEndpoint) -> tuple[str, int]:
    return endpoint.host, endpoint.port


def _held(connection: Connection[Any], endpoint: MysqlEndpoint) -> dict[int, Process]:
    """Connections that have been busy for a while and commit, by their ids.

    Raises:
        TransientError: one waits for such an answer.
    """
    every = processes(connection)
    busy = [each for each in every if each.seconds >= _PATIENCE]
    for process in busy:
        if process.statement.upper().startswith(_OF_BINLOG):
            raise _refusal("who asks waits", process, endpoint, _reason(every))
    if any(map(_is_for_replica, every)) and not is_mariadb(connection):
        return {}  # that is what the others wait behind
    return {each.ident: each for each in busy if is_commit(each.state)}


def _is_for_replica(process: Process) -> bool:
    return _FOR_REPLICA in process.state.lower()


def _reason(every: Iterable[Process]) -> str:
    if any(map(_is_for_replica, every)):
        return "a commit waits for a semi-synchronous replica that does not answer"
    return "mostly its disk is full"


def _refusal(what: str, process: Process, endpoint: MysqlEndpoint, reason: str) -> TransientError:
    return TransientError(
        f"the source does not answer questions about its binlog: {what} there (connection"
        f" {process.ident}, for {process.seconds:.0f} s); {reason}",
        hint="Its log says what it waits for; once that is over, this continues automatically",
        server=endpoint,
    )
