"""Finds an earlier position in the binlogs of the server that answers now.

A stored position is a file and an offset, and names of files are the same on many servers:
behind one address there may be another server by now (a replica that took over, a copy), or
the same one with its binlogs reset. There the file may well exist and the offset may well be
the beginning of an event, of another transaction. So before reading on, the position is compared
with what is known of it; if it is another one, it is looked up by its GTIDs, or given up (I8).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from mysql_event_stream import MesConnectionError, MesError

from setl.clock import Clock
from setl.codec.binlog.event import (
    ARTIFICIAL_FLAG,
    EVENT_HEADER,
    EventType,
    body_of,
    rotated_to,
)
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.rows.row_chunks import LOW_32_BITS, offset_behind
from setl.codec.binlog.transactions.gtid import MysqlGtids, gtids_beyond, same_gtids
from setl.codec.binlog.transactions.gtid_event import gtid_of
from setl.errors import PositionLostError, TransientError
from setl.model.position import BinlogOrigin, BinlogPosition
from setl.select.identity import temporary_server_id
from setl.systems.mysql.binlog.errors import is_lost, translate, translating_damage
from setl.systems.mysql.binlog.server import BinlogServer, PositionReport
from setl.systems.mysql.binlog.session import FIRST_OFFSET
from setl.systems.mysql.binlog.stream import StreamLimits, open_client
from setl.systems.mysql.connection import MysqlEndpoint

_TRANSACTION = frozenset(
    (EventType.GTID, EventType.GTID_TAGGED, EventType.ANONYMOUS_GTID, EventType.MARIADB_GTID)
)
_LIMIT = 60.0  # seconds that one look into the binlogs may take
_LOG = logging.getLogger(__name__)


class _Seen(NamedTuple):
    """An event that came, or, without `data`, how far the server has come without one."""

    data: bytes = b""
    checksum: bool = False
    kind: int = 0
    size: int = 0
    end: int = 0
    flags: int = 0
    sent_to: int = 0


class BinlogSearch:
    """Looks positions up on one server, over short connections. Belongs to one thread."""

    def __init__(
        self,
        endpoint: MysqlEndpoint,
        limits: StreamLimits,
        server: BinlogServer,
        clock: Clock,
    ) -> None:
        """Nothing is connected yet.

        Args:
            endpoint: the server and the account.
            limits: for connections that read them.
            server: answers questions about the same server.
            clock: for the limit of a search.
        """
        self._endpoint = endpoint
        self._limits = limits
        self._server = server
        self._clock = clock

    def resume(self, position: BinlogPosition) -> BinlogPosition:
        """The position to go on from: `position` itself, or the same position on another server.

        Args:
            position: where reading is to go on. What it says of its origin and its GTIDs is
                compared; what it does not say is taken for granted.

        Raises:
            PositionLostError: the position is gone, and cannot be found by GTIDs either.
            ConfigurationError: the server writes no binlog, or refuses the account.
            TransientError: the server cannot be reached, or was replaced meanwhile.
        """
        report = self._server.examine(position)
        reason = report.absence or self._objection(position, report) or report.disagreement
        if not reason:
            return position
        known = position.origin
        if known is None or known.server == report.server:
            removed = known is not None and report.removed and position.gtid
            return self._behind_removed(position, reason, nothing_proved=not removed)
        other_position = f"of server {known.server}, and server {report.server} answers now"
        if not position.gtid:
            raise self._server.lost(
                f"the position {position} is {other_position}: without GTIDs it cannot be found "
                f"there",
                position,
            )
        missing = self._server.missing(position.gtid)
        if missing:
            raise PositionLostError(
                f"the position {position} is {other_position}, which lacks GTIDs {missing}",
                hint="If it is a replica that still catches up, wait and start the channel again. "
                "Else the source lost transactions that are applied already: go on with `setl "
                "position reset PIPELINE --to GTIDS`, those that both servers have, and compare "
                "with `setl verify`, or load the tables again",
                server=self._endpoint,
                position=position,
            )
        try:
            return self.after(position.gtid)
        except PositionLostError as error:
            raise PositionLostError(
                f"the position {position} is {other_position}: {error.message}",
                hint=error.hint,
                server=self._endpoint,
                position=position,
            ) from error

    def _behind_removed(
        self, position: BinlogPosition, reason: str, *, nothing_proved: bool
    ) -> BinlogPosition:
        """The oldest binlog, where what this server has removed is what was executed by then.

        It has removed all that was before the position, if it is the server that it was; and
        nothing behind, if none that follows is to be lost. So both are the same: what is too
        much was not read, and what is missing was never there, since the binlogs were reset.

        Raises:
            PositionLostError: it is not, or nothing tells.
        """
        what = f"the source has nothing at {position}: {reason}"
        if nothing_proved:
            raise self._server.lost(what, position)
        oldest, all_named = self._server.oldest()
        unread = gtids_beyond(oldest.gtid, position.gtid)
        unknown = gtids_beyond(position.gtid, oldest.gtid)
        if unread:
            raise self._server.lost(f"{what}. GTIDs {unread} before them were not read", position)
        if unknown:
            text = f"{what}. Their beginning does not know GTIDs {unknown}: they were reset"
            raise self._server.lost(text, position)
        if all_named:
            return self.identified(replace(oldest, gtid=position.gtid))
        lost = self._server.lost(
            f"{what}. All GTIDs before them were read, but with `gtid_mode` other than ON there may"
            " be transactions without one",
            position,
        )
        lost.hint = (
            "If there were none: `setl stop` the channel, `setl position reset PIPELINE --to"
            f" {position.gtid}`, start it, and nothing is lost. Else: {lost.hint}"
        )
        raise lost

    def see_begun(self, transactions: str, position: BinlogPosition) -> None:
        """See that the server that answers now has transactions that the target has begun.

        A replica that was made the source while one was on its way has all that came before
        it, and nobody would take back what the target has of it.

        Args:
            transactions: their GTIDs, "" if those were not kept.
            position: the boundary in front of them, on the server before.

        Raises:
            PositionLostError: it lacks one, or nothing tells which they are.
            TransientError: the server cannot be reached.
        """
        lacking = self._server.missing(transactions) if transactions else "a transaction"
        if not lacking:
            return
        lacks = "which lacks it" if transactions else "and which transaction it is was not kept"
        server = position.origin.server if position.origin else "?"
        raise PositionLostError(
            f"the target has at least a part of {lacking}, which followed {position} of server "
            f"{server}, and server {self._server.identity()} answers now, {lacks}",
            hint="If it is a replica that still catches up, wait and start the channel again. "
            "Else the source lost a transaction of which the target has rows: go on with `setl "
            f"position reset PIPELINE --to {position.gtid or 'GTIDS'}`, and load the tables again "
            "with `setl load PIPELINE --replace`",
            server=self._endpoint,
            position=position,
        )

    def identified(self, position: BinlogPosition) -> BinlogPosition:
        """`position` with what is to be known of its file. Raises what `resume` raises."""
        return replace(position, origin=self.file(position.file, self._server.identity()))

    def with_gtids(self, position: BinlogPosition) -> BinlogPosition:
        """`position`, a transaction boundary, with the GTIDs that were executed up to there.

        A replica that replaces the source has them under another file and offset. MariaDB
        tells them; of MySQL the file is read up to there. Without any the position stays as it
        is: with ``gtid_mode=OFF``, or if that takes too long.

        Raises:
            PositionLostError: the server does not send the file.
            TransientError: the server cannot be reached.
        """
        gtid = self._server.gtid_at(position)
        if gtid is None:
            gtid = self._gtids_before(position)
        return replace(position, gtid=gtid)

    def _gtids_before(self, position: BinlogPosition) -> str:
        """What MySQL executed before a position, from the beginning of its file."""
        gtids, offset = MysqlGtids(), FIRST_OFFSET
        start = BinlogPosition(position.file, FIRST_OFFSET)
        with closing(self._events(start, partial(self._not_sent, position))) as events:
            for seen in events:
                if not seen.data or not seen.end or seen.flags & ARTIFICIAL_FLAG:
                    continue
                offset = offset_behind(offset, seen.end)
                if offset - seen.size >= position.offset:
                    return str(gtids)
                with translating_damage(seen.data, replace(position, offset=offset)):
                    if seen.kind == EventType.PREVIOUS_GTIDS:
                        body = body_of(seen.data, checksum=seen.checksum)
                        gtids = MysqlGtids.from_previous_event(body)
                    elif seen.kind in (EventType.GTID, EventType.GTID_TAGGED):
                        gtids.add(gtid_of(seen.data))
                if offset >= position.offset:
                    return str(gtids)
        _LOG.warning(
            "%s: reading %s up to %s takes more than %g s; until the first transaction the "
            "position "
            "is known by file and offset only",
            self._endpoint,
            position.file,
            position,
            _LIMIT,
        )
        return ""

    def end(self) -> BinlogPosition:
        """The end of the newest binlog, with exactly the GTIDs that are before it.

        Raises:
            ConfigurationError: the server writes no binlog, or refuses the account.
            TransientError: the server cannot be reached, or takes too long.
        """
        position = self._server.idle_end()
        if position is not None:
            return position
        position = self._server.latest()
        if position.offset > LOW_32_BITS or not self._server.all_have_gtids():
            return self.with_gtids(position)
        return replace(position, gtid=self._with_committing(position))

    def _with_committing(self, position: BinlogPosition) -> str:
        """The GTIDs before a position of MySQL, of which some are known.

        The server looks for the others in the file: these are what it sends first.

        Raises:
            TransientError: see `end`.
        """
        gtids, file = MysqlGtids(position.gtid), ""
        with closing(self._events(position.gtid)) as events:
            for seen in events:
                if seen.data:
                    behind = replace(position, file=file, offset=seen.end)
                    with translating_damage(seen.data, behind):
                        if seen.kind == EventType.ROTATE:
                            file, _ = rotated_to(seen.data, checksum=seen.checksum)
                            continue
                        if seen.kind in _TRANSACTION:
                            begins = replace(behind, offset=seen.end - seen.size & LOW_32_BITS)
                            if begins.order >= position.order:
                                return str(gtids)
                            gtids.add(gtid_of(seen.data))
                if file == position.file and max(seen.end, seen.sent_to) >= position.offset:
                    return str(gtids)
        raise TransientError(
            f"the GTIDs before {position} were not found within {_LIMIT:g} s", server=self._endpoint
        )

    def after(self, gtid: str) -> BinlogPosition:
        """The position where the first transaction stands that `gtid` does not name.

        Everything before it is named by `gtid`. Transactions behind it may be, where domains
        or servers are interleaved in another order; they are delivered again then.

        Raises:
            PositionLostError: some of `gtid` are not there, or what follows them is purged.
            ConfigurationError: `gtid` is no set of GTIDs.
            TransientError: the server cannot be reached, or the search takes too long.
        """
        missing = self._server.missing(gtid)
        latest = self.end()
        if missing:
            raise self._server.lost(f"the source has not executed the GTIDs {missing}", latest)
        if same_gtids(latest.gtid, gtid):
            return self.identified(latest)  # nothing follows yet
        found = self._first_transaction(gtid, latest)
        # What is executed in front of that position, where the server can tell: fewer than `gtid`
        # if domains are interleaved otherwise.
        return replace(found, gtid=self._server.gtid_at(found) or gtid)

    def _first_transaction(self, gtid: str, latest: BinlogPosition) -> BinlogPosition:
        reader = BinlogHeaderReader(BinlogPosition("", 0, origin=latest.origin))

        def purged(error: Exception) -> PositionLostError:
            text = f"the source has purged what follows the GTIDs {gtid}: {error}"
            return self._server.lost(text, latest)

        with closing(self._events(gtid, purged)) as events:
            for seen in events:
                if not seen.data:
                    continue
                if seen.kind in _TRANSACTION:
                    position = reader.position
                    return replace(position, offset=seen.end - seen.size, gtid=gtid)
                reader.read(seen.data, checksum=seen.checksum)
        raise TransientError(
            f"the position of the GTIDs {gtid} was not found within {_LIMIT:g} s",
            server=self._endpoint,
        )

    def file(self, name: str, server: str) -> BinlogOrigin:
        """Which file a server has under a name. Raises what `with_gtids` raises."""
        start = BinlogPosition(name, FIRST_OFFSET, origin=BinlogOrigin(server))
        reader = BinlogHeaderReader(start)
        with closing(self._events(start, partial(self._not_sent, start))) as events:
            for seen in events:
                if seen.data:
                    reader.read(seen.data, checksum=seen.checksum)
                origin = reader.position.origin
                if origin is not None and origin.created:
                    return origin
        raise TransientError(
            f"the source does not send {start.file} within {_LIMIT:g} s", server=self._endpoint
        )

    def _not_sent(self, position: BinlogPosition, error: Exception) -> PositionLostError:
        return self._server.lost(f"the source does not send {position.file}: {error}", position)

    def _events(
        self,
        start: BinlogPosition | str,
        lost: Callable[[Exception], PositionLostError] | None = None,
    ) -> Generator[_Seen]:
        """The events from a position on, or those that GTIDs do not name, for `_LIMIT` seconds.

        To be closed: the server goes on sending the rest of the file until the connection is seen
        to be closed, and the next one to be opened is often that of the stream.

        Args:
            start: where to begin.
            lost: the error where the server has nothing there; None if that cannot be.

        Raises:
            PositionLostError: that error.
            TransientError: the server cannot be reached.
        """
        server_id = temporary_server_id()
        client = open_client(self._endpoint, server_id, self._limits, start)
        try:
            client.connect()
            client.start()
            deadline = self._clock.monotonic() + _LIMIT
            while self._clock.monotonic() < deadline:
                for event in client.poll_batch():
                    if event.data is not None:
                        _, kind, _, size, end, flags = EVENT_HEADER.unpack_from(event.data)
                        yield _Seen(event.data, event.checksum_enabled, kind, size, end, flags)
                yield _Seen(sent_to=client.sent_to)
        except (MesError, MesConnectionError) as error:
            if lost is not None and is_lost(error):
                raise lost(error) from error
            raise translate(error, server_id).at(server=self._endpoint) from error
        finally:
            client.close()

    def _objection(self, position: BinlogPosition, report: PositionReport) -> str:
        """Why a position that exists is not the one that was left, in words; "" if it is."""
        known = position.origin
        if known is None:
            return ""
        if not known.created:
            # Of the file only the server is known; GTIDs of the position would be proof enough.
            same = known.server == report.server or report.proved
            return "" if same else f"{position.file} is another server's"
        found = self.file(position.file, report.server)
        if (found.writer, found.created) == (known.writer, known.created):
            return ""
        return (
            f"{position.file} was begun by server {found.writer} at {_utc(found.created)}, "
            f"and not by server {known.writer} at {_utc(known.created)}: the binlogs were reset, "
            "or this is another server"
        )


def _utc(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
