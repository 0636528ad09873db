"""Changes recorded binlog events at random and reads them: whatever they are, it has to end well.

That is a value or a typed error, within bounds of time and memory, and the same rows if they are
found by column. A test tries some
thousands of changes; for hours by hand::

    python -m tests.unit.codec.mutated_events --seconds 3600 --seed 7

Each trial follows from the seed and its number alone, so ``--first 1234 --trials 1`` is one again.
"""

import argparse
import random
import resource
import signal
import struct
import sys
import time
import traceback
import zlib
from collections import Counter
from functools import cache

from setl.codec.binlog.columns.finding import find_rows
from setl.codec.binlog.columns.form import binlog_form
from setl.codec.binlog.event import COMPRESSED_ROWS
from setl.codec.binlog.header import BinlogHeaderReader
from setl.codec.binlog.inflation import inflated_query, inflated_rows
from setl.codec.binlog.payload import payload_events
from setl.codec.binlog.rows.decoding import BinlogRowCodec
from setl.codec.binlog.transactions.author import author_of
from setl.codec.columns.column_rows import ColumnRows
from setl.codec.columns.images import UnfitRowsError
from setl.errors import SetlError
from setl.model.entry import EntryKind
from tests.unit.codec.binlog_corpus import corpus
from tests.unit.codec.binlog_events import START, EventWriter
from tests.unit.codec.binlog_tables import has_readable_values

SECONDS = 10
"""That one trial may take; a thousandth of it is usual."""

MEGABYTES = 300
"""By which one trial may raise the memory that the process has had at most."""

HEADER = 19
GTIDS = {33, 34, 42, 162}
FORMAT, TABLE_MAP, QUERY, PAYLOAD, SQUEEZED_QUERY = 15, 19, 2, 40, 165
ROWS = {23, 24, 25, 30, 31, 32, 39, *COMPRESSED_ROWS}
KINDS = [*range(43), *range(160, 173), 255]
NUMBERS = [0, 1, 2, 6, 7, 8, 31, 63, 64, 127, 128, 250, 251, 252, 253, 254, 255]


class TooLongError(BaseException):
    """A trial has taken more than `SECONDS`."""


class WrongError(Exception):
    """What was read is not what was to be read."""


@cache
def transactions():
    """What each family's stream begins with, and its transactions; of (event, checksum) pairs."""
    found = []
    for events in corpus().values():
        first = next(i for i, (event, _) in enumerate(events) if event[4] in GTIDS)
        opening, groups = events[:first], []
        for pair in events[first:]:
            if pair[0][4] in GTIDS:
                groups.append([])
            groups[-1].append(pair)
        found.append((opening, groups))
    return found


def resized(event, checksum):
    """An event whose header has its size, and which ends with its checksum if it is to have one."""
    event = event.ljust(HEADER, b"\0")
    if checksum and event[4] != FORMAT:
        event = event[:-4] if len(event) >= HEADER + 4 else event
        event = event[:9] + struct.pack("<I", len(event) + 4) + event[13:]
        return event + struct.pack("<I", zlib.crc32(event))
    return event[:9] + struct.pack("<I", len(event)) + event[13:]


def changed(pick, event, checksum, other):
    """An event with a few changes of its bytes."""
    data = bytearray(event[: len(event) - 4 if checksum and event[4] != FORMAT else None])
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        # Mostly near the front, where lengths and counts are.
        low = HEADER if pick.random() < 0.9 else 0
        high = min(len(data), low + pick.choice((12, 40, 120, 1 << 20)))
        at = min(pick.randrange(low, max(low + 1, high)), max(len(data) - 1, 0))
        match pick.randrange(11):
            case 0 if data:
                data[at] ^= 1 << pick.randrange(8)
            case 1 | 2 if data:
                data[at] = pick.choice(NUMBERS)
            case 3:
                data[at : at + 2] = struct.pack("<H", pick.choice((0, 1, 255, 4096, 65535)))
            case 4:
                data[at : at + 4] = struct.pack("<I", pick.choice((0, 1, 1 << 24, (1 << 32) - 1)))
            case 5:
                number = pick.choice((0, 1 << 31, 1 << 36, 1 << 63, (1 << 64) - 1))
                data[at : at + 9] = b"\xfe" + struct.pack("<Q", number)
            case 6:
                del data[at : at + pick.choice((1, 1, 2, 4, 16))]
            case 7:
                data[at:at] = pick.randbytes(pick.choice((1, 1, 2, 4, 16)))
            case 8:
                del data[at:]
            case 9 if other:
                some = pick.randrange(len(other))
                data[at : at + 8] = other[some : some + 8]
            case _:
                data[at:at] = data[at : at + pick.choice((1, 4, 30))]
    return resized(bytes(data) + (b"\0" * 4 if checksum and event[4] != FORMAT else b""), checksum)


def inside(pick, event, checksum, other):
    """An event of which the compressed part is changed, and what is said of it is still true."""
    writer = EventWriter(
        checksum=checksum, offset=struct.unpack_from("<I", event, 13)[0] - len(event)
    )
    if event[4] == PAYLOAD:
        inner = list(payload_events(event, checksum=checksum))
        for _ in range(pick.choice((1, 1, 2))):
            at = pick.randrange(len(inner))
            match pick.randrange(8):
                case 0:
                    del inner[at]
                    inner = inner or [other]
                case 1:
                    inner.insert(at, pick.choice(inner))
                case _:
                    inner[at] = changed(pick, inner[at], False, other)
        return writer.payload(inner, compression=pick.choice((0, 0, 255)))
    if event[4] == SQUEEZED_QUERY:
        return writer.squeezed(
            changed(pick, inflated_query(event, checksum=checksum), False, other)
        )
    return writer.squeezed(changed(pick, inflated_rows(event, checksum=checksum), False, other))


def mutated(pick):
    """The events of a stream, some of them changed."""
    opening, groups = pick.choice(transactions())
    begin = pick.randrange(len(groups))
    body = [
        pair for group in groups[begin : begin + pick.choice((1, 1, 1, 2, 4))] for pair in group
    ]
    events = [*opening, *body]
    for _ in range(pick.choice((1, 1, 1, 2, 3))):
        # The opening is the same each time.
        low = len(opening) if len(events) > len(opening) and pick.random() < 0.95 else 0
        at = pick.randrange(low, len(events))
        event, checksum = events[at]
        other = pick.choice(pick.choice(groups))[0]
        match pick.randrange(24):
            case 0:
                events.insert(at, events[at])
            case 1 if len(events) > 1:
                del events[at]
            case 2:
                kind = pick.choice(KINDS)
                events[at] = resized(event[:4] + bytes([kind]) + event[5:], checksum), checksum
            case 3:
                events[at] = other, checksum
            case 4 | 5 | 6 | 7 | 8 | 9 if event[4] in {PAYLOAD, SQUEEZED_QUERY, *COMPRESSED_ROWS}:
                try:
                    events[at] = inside(pick, event, checksum, other), checksum
                except (ValueError, LookupError, struct.error, OSError):
                    events[at] = changed(pick, event, checksum, other), checksum
            case _:
                events[at] = changed(pick, event, checksum, other), checksum
    return events


def packets(events):
    return b"".join((len(event) + 1).to_bytes(3, "little") + b"\0\0" + event for event, _ in events)


class Trials:
    """Reads changed events with codecs that are kept from trial to trial."""

    def __init__(self):
        self.codec = BinlogRowCodec()
        self.counts = Counter()

    def run(self, seed, number):
        """One trial; raises whatever is no typed error."""
        pick = random.Random(f"{seed} {number}")
        events = mutated(pick)
        reader = BinlogHeaderReader(
            START,
            chunk_events=pick.choice((1, 1000)),
            mixes=lambda _: pick.random() < 0.5,
            hold_bytes=pick.choice((100, 1 << 20)),
        )
        joined = pick.random() < 0.5
        try:
            for n, (event, checksum) in enumerate(events):
                entries = []
                if joined:
                    at, entries = reader.read_rows(packets(events[n : n + 1]), 0, checksum=checksum)
                    if at:
                        self.take(entries)
                        continue
                self.take([*entries, *reader.read(event, checksum=checksum)])
        except SetlError as error:
            self.counts[type(error).__name__] += 1
        else:
            self.counts["read to the end"] += 1

    def take(self, entries):
        for entry in entries:
            assert entry.position.order
            if entry.kind is EntryKind.BEGIN:
                author_of(entry.payload)
            elif entry.kind is EntryKind.ROWS:
                self.decode(entry.payload, entry.context)

    def decode(self, payload, context):
        try:
            self.codec.schema(payload, context)
        except SetlError as error:
            self.counts[f"table: {type(error).__name__}"] += 1
            return
        images, whole = [], True
        for _, record in self.codec.records(payload):
            for keys_alone in (True, False):
                said = self.said(record, context, keys_alone=keys_alone)
            whole = whole and not isinstance(said, str)
            images.append(None if isinstance(said, str) else said.images)
        self.counts["rows decoded" if whole else "rows: DataError"] += 1
        self.by_column(payload, context, images)

    def by_column(self, payload, context, images):
        form = binlog_form(context)
        if form is None:
            return
        try:
            found = find_rows(form, [(0, payload)])
        except UnfitRowsError:
            self.counts["columns: UnfitRowsError"] += 1
            return
        rows = ColumnRows(found, found.starts)
        if not has_readable_values(rows):
            return
        self.counts["read by column"] += 1
        if None in images:
            raise WrongError(f"columns say {rows!r}, where there is an error")
        expected = [row for own in images for pair in own for row in pair if row is not None]
        if repr(list(rows)) != repr(expected):
            raise WrongError(f"columns say {rows!r}, not {expected!r}")

    def said(self, record, context, *, keys_alone):
        try:
            return self.codec.decode(record, context, keys_alone=keys_alone)
        except SetlError as error:
            return type(error).__name__


def bounded(trials, seed, number):
    """One trial within the bounds; raises what `Trials.run` raises, or what exceeds one."""

    def late(*_):
        raise TooLongError

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    former = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        trials.run(seed, number)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
    if grown > MEGABYTES:
        raise WrongError(f"it took {grown} MB")


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--trials", type=int, default=sys.maxsize)
    options.add_argument("--seconds", type=float, default=60)
    given = options.parse_args()
    # What takes all memory is an error of its trial, and not the end of this process.
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    trials, faults, end = Trials(), Counter(), time.monotonic() + given.seconds
    number = given.first
    while time.monotonic() < end and number - given.first < given.trials:
        try:
            bounded(trials, given.seed, number)
        except (Exception, TooLongError) as error:  # noqa: BLE001 - that is what is looked for
            where = traceback.extract_tb(error.__traceback__)[-1]
            fault = f"{type(error).__name__} at {where.filename}:{where.lineno}"
            faults[fault] += 1
            if faults[fault] <= 3:
                sys.stdout.write(f"trial {number}: {fault}: {str(error)[:300]}\n")
                sys.stdout.flush()
        number += 1
    sys.stdout.write(f"{number - given.first} trials: {dict(trials.counts)}\n{dict(faults)}\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
