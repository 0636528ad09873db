"""A run whose parts do what a test says, and note what they are asked."""

import threading
import time
from types import SimpleNamespace
from typing import Any

from setl.channel.fields.load_limits import LoadLimits
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import SetlError
from setl.extract.extractor import Extractor
from setl.extract.loopback import MarkIdentity
from setl.extract.statements import SkippedStatements
from setl.model.entry import Entry, EntryKind
from setl.model.leadership import Leadership
from setl.model.loaded import Loaded
from setl.model.position import BinlogPosition
from setl.run.etl_work import EtlWork
from setl.run.loads.catching_up import CatchingUp
from setl.run.measured.progress import Progress
from setl.run.run import PipelineRun
from setl.run.table_loads.loading import TableLoading
from setl.run.targets.schema_changes import SchemaChangePolicy
from setl.select.batching import BatchSettings
from setl.select.reader import SelectLoop, SelectSettings
from setl.select.source import absorbs_nothing


def at(offset):
    return BinlogPosition("binlog.000001", offset)


def transaction(start, rows, table="orders"):
    """BEGIN, single-row entries, COMMIT; every entry is ten bytes long."""
    kinds = [EntryKind.BEGIN, *[EntryKind.ROWS] * rows, EntryKind.COMMIT]
    return [
        Entry(
            kind,
            at(start + 10 * (i + 1)),
            1_700_000_000.0,
            "shop" if kind is EntryKind.ROWS else "",
            table if kind is EntryKind.ROWS else "",
            rows=1 if kind is EntryKind.ROWS else 0,
            payload=b"x" if kind is EntryKind.ROWS else b"",
        )
        for i, kind in enumerate(kinds)
    ]


class ScriptedSource:
    """A stream that is always all there; remembers where it was opened."""

    def __init__(self, entries):
        self.entries = entries
        self.opened = []
        self._rest = []

    def initial(self):
        return at(4)

    def locate(self, checkpoint):
        return checkpoint

    def open(self, position):
        self.opened.append(position.offset)
        self._rest = [e for e in self.entries if e.position.offset > position.offset]

    def read(self, limit, timeout, absorbs=absorbs_nothing):
        if not self._rest:
            threading.Event().wait(min(timeout, 0.01))
        part, self._rest = self._rest[:limit], self._rest[limit:]
        return part

    def latest(self):
        return self.entries[-1].position

    def sizes(self):
        return []

    def behind(self):
        return None

    def waiting_for(self):
        return ""

    def blocked(self):
        return None

    def shared(self):
        return False

    def close(self):
        pass

    release = close


class Log(list):
    """What happened, in order, over all parts."""


class RecordingStore:
    def __init__(self, log, stored=None):
        self.log = log
        self.stored = stored
        self.stored_before = None
        self.failures = []

    def load(self):
        return self.stored

    def age(self):
        return self.stored_before

    def store(self, checkpoint, epoch):
        if self.failures:
            raise self.failures.pop(0)
        self.log.append(("store", checkpoint.resume.offset))
        self.stored = checkpoint

    def close(self):
        self.log.append(("close", 0))


class RecordingFence:
    def __init__(self, log):
        self.log = log

    def raise_to(self, epoch, nid):
        self.log.append(("fence", epoch))

    def end_writers(self, epoch):
        self.log.append(("end writers", epoch))


class RecordingJob:
    """Applies rows by noting their positions; fails as told."""

    def __init__(self, log):
        self.log = log
        self.failures = []
        self.applied = []
        self.tickets = []
        self.throughs = []
        self.cancelled = threading.Event()
        self.abandoned = False
        self.forgotten = 0

    def forget_loaded(self, ticket):
        self.forgotten += 1

    def applied_through(self, ticket):
        return 0

    def run(self, rows, ticket, redelivered_through):
        if self.failures:
            failure = self.failures.pop(0)
            if failure is not None:
                raise failure
        self.log.append(("load", rows[-1].entry.position.offset))
        self.tickets.append(ticket)
        self.throughs.append(redelivered_through)
        self.applied += [row.entry.position.offset for row in rows]
        return Loaded(rows=len(rows))

    def cancel(self):
        self.cancelled.set()


class Routing:
    def route(self, schema, table):
        return (SimpleNamespace(index=0),) if table == "orders" else ()

    def shadow(self, schema, table):
        return None


class RecordingDdl:
    """Passes schema changes on by noting what they are."""

    def __init__(self, log):
        self.log = log
        self.changes = []

    def apply(self, ticket, change):
        self.log.append(("ddl", ticket.through & 0xFFFFFFFF))
        self.changes.append(change)
        return [change.statement]


_PLAIN: Any = SimpleNamespace(rereads=False)
NO_TABLES_COME = CatchingUp(_PLAIN, lambda: None, lambda _: frozenset())


def no_tables(leading, progress, clock):
    """For pipelines that load none."""

    def never(*_):
        raise AssertionError("nobody asks for tables")

    unused: Any = SimpleNamespace()
    requests: Any = SimpleNamespace(unanswered=list)
    return TableLoading(
        unused,
        leading,
        progress,
        clock,
        router=unused,
        tables=never,
        latest=never,
        catching_up=NO_TABLES_COME,
        holds_rows=never,
        requests=requests,
        wanted=(),
        limits=LoadLimits(),
    )


class Bench:
    """A run with all its parts at hand."""

    def __init__(self, entries, stored=None, **changes):
        self.log = Log()
        self.source = ScriptedSource(entries)
        self.store = RecordingStore(self.log, stored)
        self.job: Any = RecordingJob(self.log)
        clock: Any = SimpleNamespace(monotonic=time.monotonic, now=lambda: 1_700_000_100.0)
        routing: Any = Routing()
        codec = DtsRowCodec()  # to which any bytes are one record
        self.progress = Progress(clock)
        settings = SelectSettings(batch=BatchSettings(rows=changes.pop("batch_rows", 3), wait=0.01))
        leading = Leadership("shop", "orders", "n1", 5)
        ddl = changes.pop("ddl", "ignore")
        self.ddl = RecordingDdl(self.log) if ddl == "pass" else None
        self.work: Any = EtlWork(
            leading,
            self.progress,
            clock,
            extractor=Extractor(
                routing,
                MarkIdentity(7),
                codec,
                statements=SkippedStatements(lambda _, __: False, lambda _: True),
            ),
            job=self.job,
            catching_up=NO_TABLES_COME,
            fence=RecordingFence(self.log),
            heartbeat_id=changes.pop("heartbeat_id", 1),
            ddl=SchemaChangePolicy(ddl, self.ddl, leading, self.progress),
            rows_per_load=changes.pop("rows_per_load", 100),
            tables=no_tables(leading, self.progress, clock),
        )
        self.run = PipelineRun(
            leading,
            self.progress,
            clock,
            source=self.source,
            work=self.work,
            store=self.store,
            heartbeat=changes.pop("heartbeat", None),
            select=SelectLoop(self.source, settings, epoch=5, name="shop/orders"),
            generation=changes.pop("generation", 1),
            store_every=changes.pop("store_every", 0.0),
            verifier=changes.pop("verifier", None),
        )
        self.error = None
        self.thread = threading.Thread(target=self._work, daemon=True)

    def _work(self):
        try:
            self.run.run()
        except SetlError as error:
            self.error = error

    def start(self):
        self.thread.start()
        return self

    @property
    def stored_at(self):
        """The offset of the stored checkpoint, None before there is one."""
        stored = self.store.stored
        return None if stored is None else stored.resume.offset

    def finish(self):
        self.run.stop()
        self.thread.join(60)
        assert not self.thread.is_alive()


ROWS_OF_TWO = [24, 34]


TWO = transaction(4, 2)  # rows at 24 and 34, commit at 44


class BackgroundTask:
    """What is done alongside the stream; notes what it is told."""

    def __init__(self):
        self.reached = lambda: None
        self.stopped = threading.Event()

    def start(self, reached):
        self.reached = reached

    def stop(self):
        self.stopped.set()
