"""The file of a position is gone at the source; GTIDs tell whether anything was lost with it."""

import time
from dataclasses import replace
from typing import Any

import pytest

from setl.channel.file import GtidStart, MysqlSource
from setl.codec.binlog.refused import past, refused
from setl.errors import ConfigurationError, FatalError, PositionLostError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.entry import EntryKind
from setl.systems.mysql.binlog.errors import StreamRefusedError
from setl.systems.mysql.binlog.positions import find_binlog_position, parse_binlog_start
from setl_embedded import MySql
from tests.integration.pipelines import execute, mysql
from tests.integration.sources.test_source_replaced import (
    READER,
    binlogs,
    ended,
    insert,
    make_table,
    opened,
    purge_all,
    read_to_end,
    row_counts,
    source_of,
    transactions,
)
from tests.integration.streams_read import read_until
from tests.waiting import eventually

pytestmark = pytest.mark.servers


@pytest.fixture
def own(another_server, tmp_path):
    with another_server(tmp_path, "own", 221) as server:
        yield server


def is_mysql(server):
    return isinstance(server, MySql)


def all_read(server, position) -> Any:
    """The checkpoint of who has read a server's binlog from a position to its end."""
    entries = read_to_end(server, position)
    return Checkpoint(next(e.position for e in reversed(entries) if ended(e)), timestamp=5.0)


def restart(server, *options):
    server.stop()
    server._options = [*server._options, *options]
    server.start()


def moved(server, checkpoint, caplog) -> Any:
    """Where a checkpoint goes on whose file is gone, which the log says."""
    caplog.clear()
    found: Any = source_of(server).locate(checkpoint)
    assert found.generation == checkpoint.generation + 1
    assert found.resume.gtid == checkpoint.resume.gtid
    assert "no longer has" in caplog.text
    assert str(checkpoint.resume) in caplog.text
    assert checkpoint.resume.gtid in caplog.text
    assert source_of(server).locate(found) is found
    return found


def lost(server, checkpoint, match):
    with pytest.raises(PositionLostError, match=match) as raised:
        source_of(server).locate(checkpoint)
    assert "setl position reset" in raised.value.hint
    return raised.value


def test_what_was_read_to_its_end_may_be_removed(own, caplog):
    table = make_table(own)
    insert(own, table, 3)
    read = all_read(own, source_of(own, "earliest").initial())

    # Nothing followed before it was removed.
    oldest = purge_all(own)
    found = moved(own, read, caplog)
    assert (found.resume.file, found.resume.offset) == (oldest, 4)
    insert(own, table, 2)
    entries = read_to_end(own, found.resume)
    assert sum(row_counts(entries).values()) == 2
    read = all_read(own, found.resume)

    # One transaction did.
    insert(own, table)
    newest = all_read(own, read.resume)
    (unread,) = set(transactions(read_to_end(own, read.resume)))
    purge_all(own)
    error = lost(own, read, "was purged; it keeps .* before them were not read")
    assert unread in str(error)
    found = moved(own, newest, caplog)
    lost(own, replace(newest, resume=replace(newest.resume, gtid="")), "was purged; it keeps")
    # It is not said of which server the position is.
    lost(own, replace(newest, resume=replace(newest.resume, origin=None)), "was purged")

    # Files get another name. MariaDB counts its GTIDs from 1 again then.
    insert(own, table)
    read = all_read(own, found.resume)
    restart(own, "--log-bin=renamed")
    assert binlogs(own)[0].startswith("renamed.")
    if is_mysql(own):
        found = moved(own, read, caplog)
        assert found.resume.file == "renamed.000001"
        insert(own, table, 2)
        entries = read_to_end(own, found.resume)
        assert sum(row_counts(entries).values()) == 2
        lost(own, newest, "have another name.* before them were not read")
        # All that was before the name is known of behind it, too.
        read = all_read(own, found.resume)
        purge_all(own)
        found = moved(own, read, caplog)
        assert read_until_end_is_empty(own, found)
    else:
        lost(own, read, "have another name.* they were reset")
        # Nothing is lost where all had been read by then.
        insert(own, table, 2)
        entries = read_to_end(own, source_of(own, "earliest").initial())
        assert sum(row_counts(entries).values()) == 2


def read_until_end_is_empty(server, checkpoint):
    return not row_counts(read_to_end(server, checkpoint.resume))


class Refused:
    """A stream that has ended with an error."""

    unanswered = False

    def __init__(self, position, error, *, inside=False):
        self.position, self.error, self.inside = position, error, inside

    def read(self, *_):
        raise self.error

    def close(self):
        pass


def reset(server, number=1):
    statement = "RESET BINARY LOGS AND GTIDS" if is_mysql(server) else "RESET MASTER"
    execute(server, statement if number == 1 else f"{statement} TO {number}")


def test_what_was_reset_is_lost_though_files_have_higher_numbers(own):
    table = make_table(own)
    insert(own, table, 3)
    read = all_read(own, source_of(own, "earliest").initial())
    reset(own, 1_103_860)
    text = "was purged; it keeps .*1103860.* they were reset"
    lost(own, read, text)
    # GTIDs come again, for other transactions. Purged or not, there were none before the first.
    insert(own, table, 8)
    lost(own, read, text)
    again = all_read(own, source_of(own, "earliest").initial())
    assert again.resume.gtid != read.resume.gtid
    oldest = purge_all(own)
    lost(own, read, "before them were not read")
    then: Any = source_of(own).locate(again)
    assert then.resume.file == oldest


def test_a_stop_inside_a_transaction_names_a_position_to_go_on_at(own):
    table = make_table(own)
    start = source_of(own).initial()
    insert(own, table, rows=3)
    behind = source_of(own).initial()
    insert(own, table)
    inside = next(e.position for e in read_to_end(own, start) if e.kind is EntryKind.ROWS)
    source: Any = source_of(own)
    source._stream = Refused(inside, refused(99, inside), inside=True)
    source._stream.error.hint = past(inside)
    with pytest.raises(FatalError) as raised:
        source.read(1, 1.0)
    assert f"`setl position reset PIPELINE --to {behind}`" in raised.value.hint
    config = MysqlSource.model_validate(mysql(own))
    found = find_binlog_position(config, READER, parse_binlog_start(str(behind)))
    assert found.order == behind.order
    with pytest.raises(ConfigurationError, match=f"inside a transaction: .* at {behind}"):
        find_binlog_position(config, READER, parse_binlog_start(str(inside)))


MYSQL = pytest.mark.family("mysql", why="MariaDB gives each transaction a GTID, and goes on")


@MYSQL
def test_without_a_gtid_for_each_transaction_nothing_is_proved(own):
    table = make_table(own)
    insert(own, table, 2)
    read = all_read(own, source_of(own, "earliest").initial())
    purge_all(own)
    execute(own, "SET GLOBAL gtid_mode = ON_PERMISSIVE")
    error = lost(own, read, "there may be transactions without one")
    # The hint that the hint names is one.
    assert f"`setl position reset PIPELINE --to {read.resume.gtid}`" in error.hint
    assert "nothing is lost" in error.hint
    begun: Any = source_of(own, GtidStart(gtid=read.resume.gtid)).initial()
    assert str(begun.gtid) == read.resume.gtid
    execute(own, "SET GLOBAL gtid_mode = ON")
    assert source_of(own).locate(read).generation == 2


@MYSQL
def test_a_reset_is_reported_at_once_while_a_stream_is_open(own):
    table = make_table(own)
    source: Any = source_of(own)
    for times in (0, 40):
        start: Any = source_of(own).initial()
        insert(own, table, 30)
        # Files that were begun in one second look alike.
        eventually(lambda: time.time() >= start.origin.created + 1, 5)  # noqa: B023
        with opened(own, start) as opened_source:
            read_until(opened_source, lambda found: len(transactions(found)) >= 30)
            reset(own)
            insert(own, table, times)  # the file may have the position again
            with pytest.raises(PositionLostError, match="were reset") as raised:
                read_until(opened_source, lambda found: found)
            assert "setl position reset" in raised.value.hint
    # What else it may mean.
    position = all_read(own, source_of(own, "earliest").initial()).resume
    refusal = StreamRefusedError("error 1236: I/O error reading log event", hint="Fix it")
    source._stream = Refused(position, refusal)
    with pytest.raises(StreamRefusedError, match="I/O error"):
        source.read(1, 1.0)
    purge_all(own)
    with pytest.raises(TransientError, match="looked up again"):
        source.read(1, 1.0)
    other = position.origin._replace(server="another")
    source._stream = Refused(replace(position, origin=other), refusal)
    with pytest.raises(TransientError, match="another server answers"):
        source.read(1, 1.0)
