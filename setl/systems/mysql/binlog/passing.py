"""Tells whether a pipeline has passed a place of a binlog, and finds the place that is meant."""

from __future__ import annotations

from dataclasses import replace

from setl.channel.file import BinlogStart, GtidStart
from setl.codec.binlog.transactions.gtid import MysqlGtids, mariadb_gtids
from setl.errors import ConfigurationError, PositionLostError
from setl.model.position import BinlogOrigin, BinlogPosition, Position
from setl.systems.mysql.binlog.places import parse_binlog_place
from setl.systems.mysql.binlog.search import BinlogSearch
from setl.systems.mysql.binlog.server import BinlogServer

NOW = "now"


def binlog_place_to_pass(text: str, server: BinlogServer, search: BinlogSearch) -> BinlogPosition:
    """The place that somebody wants to see passed; see `SourceSystem.place_to_pass`.

    A place with an empty file name is known by its GTIDs alone.
    """
    if text.strip() == NOW:
        latest = search.identified(search.end())
        # Transactions without a GTID lie between those that have one.
        return latest if server.all_have_gtids() else replace(latest, gtid="")
    place = parse_binlog_place(text)
    if isinstance(place.start, BinlogStart):
        wanted = BinlogPosition(place.start.file, place.start.offset)
        return replace(wanted, origin=BinlogOrigin(server.check(wanted)))
    if not isinstance(place.start, GtidStart):
        raise ConfigurationError(
            f"a binlog cannot be waited for to pass {text!r}",
            hint="Write now, GTIDs or FILE:OFFSET; a binlog's files are dated, not what is in them",
        )
    gtid = place.start.gtid
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
    # does not tell, the place does.
    try:
        return replace(search.after(gtid), gtid=gtid)
    except PositionLostError:
        return known


def binlog_passed(reached: Position, place: Position) -> bool:
    """Whether everything before `place` surely lies before `reached`; False if nobody can tell.

    GTIDs decide where both have them: they hold on a server that took another's place, and in a
    file that was begun after the last transaction. Offsets only mean something on one server.

    Offsets in one file are sure in any case: GTIDs of a place inside a file may lag behind it.
    """
    if not (isinstance(reached, BinlogPosition) and isinstance(place, BinlogPosition)):
        return False
    same_file = reached.file == place.file and reached.origin == place.origin
    if same_file and place.origin and place.origin.created and reached.offset >= place.offset:
        return True
    if place.gtid and reached.gtid:
        named = _names_all(reached.gtid, place.gtid)
        if named is not None:
            return named
    if not place.file or reached.origin is None or place.origin is None:
        return False
    return reached.origin.server == place.origin.server and reached.order >= place.order


def _names_all(executed: str, wanted: str) -> bool | None:
    """Whether executed GTIDs hold all of others; None if their notation does not tell."""
    if ":" in wanted or ":" in executed:
        if (":" in wanted) != (":" in executed):
            return None
        both = MysqlGtids(f"{executed},{wanted}")
        return str(both) == str(MysqlGtids(executed))
    last = {domain: (server, number) for domain, server, number in mariadb_gtids(executed)}
    told = True
    for domain, server, number in mariadb_gtids(wanted):
        if domain not in last:
            return False
        by, newest = last[domain]
        # Each server counts on from what it has seen of a domain, unless two write to it at once.
        if by != server:
            told = False
        elif newest < number:
            return False
    return True if told else None
