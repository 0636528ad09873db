"""Tells whether a pipeline has passed a position in a binlog, and finds one that is meant."""

from __future__ import annotations

from dataclasses import replace

from setl.channel.file import BinlogStart, GtidStart
from setl.codec.binlog.transactions.gtid import MysqlGtids, mariadb_gtids
from setl.errors import ConfigurationError, PositionLostError
from setl.model.position import BinlogOrigin, BinlogPosition, Position
from setl.systems.mysql.binlog.positions import parse_binlog_start
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.server import BinlogServer

NOW = "now"


def binlog_position_to_reach(
    text: str, server: BinlogServer, search: BinlogSearch
) -> BinlogPosition:
    """The position that somebody wants to see passed; see `SourceSystem.position_to_reach`.

    A position with an empty file name is known by its GTIDs alone.
    """
    if text.strip() == NOW:
        latest = search.identified(search.end())
        # Transactions without a GTID lie between those that have one.
        return latest if server.all_have_gtids() else replace(latest, gtid="")
    position = parse_binlog_start(text)
    if isinstance(position.start, BinlogStart):
        wanted = BinlogPosition(position.start.file, position.start.offset)
        return replace(wanted, origin=BinlogOrigin(server.check(wanted)))
    if not isinstance(position.start, GtidStart):
        raise ConfigurationError(
            f"a binlog cannot be waited for to pass {text!r}",
            hint="Write now, GTIDs or FILE:OFFSET; a binlog's files are dated, not what is in them",
        )
    gtid = position.start.gtid
    absent = server.missing(gtid)
    if absent:
        raise ConfigurationError(
            f"the source has not executed the GTIDs {absent}",
            hint="Read them at the source, after the commit that is waited for",
        )
    known = BinlogPosition("", 0, gtid, BinlogOrigin(server.identity()))
    if ":" in gtid:
        return known
    # A state of MariaDB names the last GTID of a domain, whichever server wrote it. Where that
    # does not tell, the position does.
    try:
        return replace(search.after(gtid), gtid=gtid)
    except PositionLostError:
        return known


def binlog_passed(reached: Position, position: Position) -> bool:
    """Whether everything before `position` surely lies before `reached`; False if nobody can tell.

    GTIDs decide where both have them: they hold on a server that replaced another, and in a
    file that was begun after the last transaction. Offsets only mean something on one server.

    Offsets in one file are sure in any case: GTIDs of a position inside a file may lag behind it.
    """
    if not (isinstance(reached, BinlogPosition) and isinstance(position, BinlogPosition)):
        return False
    same_file = reached.file == position.file and reached.origin == position.origin
    if (
        same_file
        and position.origin
        and position.origin.created
        and reached.offset >= position.offset
    ):
        return True
    if position.gtid and reached.gtid:
        named = _names_all(reached.gtid, position.gtid)
        if named is not None:
            return named
    if not position.file or reached.origin is None or position.origin is None:
        return False
    return reached.origin.server == position.origin.server and reached.order >= position.order


def _names_all(executed: str, wanted: str) -> bool | None:
    """Whether executed GTIDs hold all of others; None if their notation does not tell."""
    if ":" in wanted or ":" in executed:
        if (":" in wanted) != (":" in executed):
            return None
        both = MysqlGtids(f"{executed},{wanted}")
        return str(both) == str(MysqlGtids(executed))
    last = {domain: (server, number) for domain, server, number in mariadb_gtids(executed)}
    reported = True
    for domain, server, number in mariadb_gtids(wanted):
        if domain not in last:
            return False
        by, newest = last[domain]
        # Each server counts on from what it has seen of a domain, unless two write to it at once.
        if by != server:
            reported = False
        elif newest < number:
            return False
    return True if reported else None
