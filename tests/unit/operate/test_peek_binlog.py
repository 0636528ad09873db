from collections import deque

from setl.channel.file import MysqlSource
from setl.model.entry import Entry, EntryKind
from setl.model.position import BinlogPosition
from setl.operate.peek.look import subject_at
from setl.select.source import absorbs_nothing
from setl.systems.mysql.peek import BinlogPeek


def at(offset):
    return BinlogPosition("b.000002", offset)


def commit(offset):
    return Entry(EntryKind.COMMIT, at(offset), 1.0)


class Stream:
    """Stands for a `BinlogStream`: each read gives the next of some answers, and its position."""

    def __init__(self, *answers):
        self.answers = deque(answers)
        self.position = at(4)

    def read(self, limit, timeout, absorbs=absorbs_nothing):
        self.position, entries = self.answers.popleft()
        return entries


def seen(end, *answers):
    config = subject_at("mysql://u@db1", "").config
    assert isinstance(config, MysqlSource)
    stream = Stream(*answers)
    found = BinlogPeek(config, 1)._read(stream, end)  # pyright: ignore[reportArgumentType]
    return [record and record.position.order[1] for record in found], stream.answers


def test_a_slow_server_is_waited_for_up_to_the_end():
    answers = ((at(4), []), (at(50), [commit(50)]), (at(50), []), (at(90), [commit(90)]))
    quiet = ((at(90), []), (at(90), []))
    found, left = seen(at(90), *answers, *quiet, *quiet)
    assert found == [None, 50, None, 90]
    assert len(left) == 3


def test_the_end_may_be_reached_without_an_entry():
    found, _ = seen(at(90), (at(50), [commit(50)]), (at(95), []), (at(95), []))
    assert found == [50, None]


def test_a_file_behind_that_of_the_end_is_not_the_end():
    end = BinlogPosition("b.000003", 4)
    found, _ = seen(end, (at(900), [commit(900)]), (at(900), []), (end, []), (end, []))
    assert found == [900, None, None]
