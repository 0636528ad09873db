"""Rules about a pipeline as a whole, over raw parts of a channel file."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from posixpath import isabs

from setl.channel.fields.endpoints import stores_checkpoints, takes_documents
from setl.channel.fields.kafka_formats import STANDALONE
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, part
from setl.channel.text.references import has_reference

_NOT_A_FILE = (
    "cannot be a file with `mode: subscribe`: the next member of the group may be on another"
    " machine, and has to find it"
)
_NOT_A_PATH = "must be a path from the root: a node may be started in another folder next time"
_RELAY_KEYS = frozenset({"from", "from_", "group"})


def wrong_checkpoint(raw: Raw, source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """Which store a pipeline's endpoints, and the mode of its source, allow."""
    store, file = raw.get("checkpoint"), raw.get("checkpoint_file")
    kind, mode = target.get("type"), source.get("mode", "assign")
    path: Path = ("checkpoint",)
    if store == "target" and takes_documents(target):
        yield path, "cannot be `target` where rows become documents; leave it out"
    elif store == "target" and kind != "kafka" and not stores_checkpoints(target):
        yield path, f"cannot be `target`: one of type {kind} keeps no checkpoint; leave it out"
    if kind == "kafka" and store not in {None, "zookeeper"}:
        yield path, "is stored in ZooKeeper for a relay; leave it out"
    elif store == "kafka":
        if source.get("type") != "kafka":
            yield path, "can only be `kafka` where the source is Kafka"
        elif not source.get("sid"):
            yield ("source", "sid"), "is required for `checkpoint: kafka`: it is the consumer group"
    elif store == "file":
        if mode == "subscribe":
            yield path, _NOT_A_FILE
        if not file:
            yield ("checkpoint_file",), "is required for `checkpoint: file`"
        elif isinstance(file, str) and not has_reference(file) and not isabs(file):
            yield ("checkpoint_file",), _NOT_A_PATH
    if file and store != "file":
        yield ("checkpoint_file",), "means nothing without `checkpoint: file`"


def wrong_ddl(raw: Raw, source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """Schema changes are replicated by one pipeline, which sees all rows before and after them."""
    if raw.get("ddl") != "pass":
        return
    if source.get("partitions") is not None:
        reason = "every partition has the change, each at another moment; choose ignore or stop"
        yield ("ddl",), f"cannot be `pass` with `partitions`: {reason}"
    if target.get("type") == "kafka":
        yield ("ddl",), "means nothing to a relay, which passes schema changes on as records"


def wrong_load(tables: Sequence[Raw], source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """Which pipelines can load the rows that are there."""
    every = bool(part(source.get("start")).get("load"))
    asking: list[Path] = [("source", "start")] if every else []
    asking += [("tables", i, "load") for i, table in enumerate(tables) if table.get("load")]
    for path in asking:
        if target.get("type") == "kafka":
            yield path, "means nothing to a relay, which copies changes and no rows"
        if source.get("type") == "kafka":
            if not source.get("database"):
                yield path, "needs the `database` of the topic, since no record has the rows"
            if source.get("partitions") is not None or source.get("partition"):
                yield path, "needs a topic of one partition, since the others' changes come apart"


def wrong_load_limits(raw: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """A limit about replicas needs some, and they need the limit."""
    limited = part(raw.get("load_limits")).get("replica_lag") is not None
    if limited and not target.get("replicas"):
        yield ("load_limits", "replica_lag"), "needs `replicas` in the target, which is a MySQL"
    if target.get("replicas") and not limited:
        yield ("target", "replicas"), "mean nothing without `load_limits: {replica_lag: …}`"


def wrong_create(
    raw: Raw, tables: Sequence[Raw], source: Raw, target: Raw
) -> Iterator[tuple[Path, str]]:
    """Tables are created from what their server says of them."""
    paths: list[Path] = [("create",)] if raw.get("create") else []
    paths += [("tables", i, "create") for i, table in enumerate(tables) if table.get("create")]
    for path in paths:
        if target.get("type") == "kafka":
            if path == ("create",):  # of a table `wrong_relay` says it
                yield path, "means nothing to a relay, which writes records and no tables"
        elif source.get("type") == "kafka" and not source.get("database"):
            yield path, "needs the server that the records are of: `database` in the source"


def shared_checkpoints(pipelines: Sequence[Raw]) -> Iterator[tuple[Path, str]]:
    """Two pipelines cannot keep their place in the same file or group, or take turns in one."""
    owners: dict[Hashable, int] = {}
    for i, pipeline in enumerate(pipelines):
        source, store = part(pipeline.get("source")), pipeline.get("checkpoint")
        topic, number, sid = source.get("topic"), source.get("partition", 0), source.get("sid")
        claims: list[tuple[Hashable, Path, str]] = []
        if store == "file":
            file = pipeline.get("checkpoint_file")
            text = "is already the file in which pipelines[{}] keeps its checkpoint"
            claims.append((("file", str(file)), ("checkpoint_file",), text))
        if store == "kafka" and sid:
            text = "cannot be `kafka`: pipelines[{}] keeps its checkpoint in the same group"
            claim = ("kafka", str(sid), str(topic), str(number))
            claims.append((claim, ("checkpoint",), text))
        if source.get("mode") == "subscribe" and sid:
            text = "is already the group of pipelines[{}]; only one of them would ever read"
            claims.append((("member", str(sid), str(topic)), ("source", "sid"), text))
        for claim, path, text in claims:
            first = owners.setdefault(claim, i)
            if first != i:
                yield ("pipelines", i, *path), text.format(first)


def wrong_return(pipelines: Sequence[Raw]) -> Iterator[tuple[Path, str]]:
    """Records that stand alone have no marks: what the channel wrote would come back with them."""
    targets = [part(pipeline.get("target")) for pipeline in pipelines]
    sites = [_server(each) if each.get("type") == "mysql" else "" for each in targets]
    for i, pipeline in enumerate(pipelines):
        source = part(pipeline.get("source"))
        if str(source.get("format")) not in STANDALONE or not sites[i]:
            continue
        origin = _server(part(source.get("database")))
        others = {site for site in sites if site not in ("", sites[i])}
        if origin in others if origin else others:
            reason = (
                f"cannot be {source['format']} where another pipeline of the channel may write to"
                " the same database, since these records have no marks by which a channel knows"
                " its own changes; use `type: mysql`, or name the `database` if it is another one"
            )
            yield ("pipelines", i, "source", "format"), reason


def _server(database: Raw) -> str:
    """Host and port of a database, "" if there is none."""
    return f"{database.get('host')}:{database.get('port', 3306)}" if database else ""


def wrong_relay(tables: Sequence[Raw], source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """A relay replicates what a MySQL server did, as it did it."""
    if target.get("type") != "kafka":
        return
    if source.get("type") == "kafka":
        yield ("source", "type"), "must be mysql: a relay reads a binlog"
    for i, table in enumerate(tables):
        for key, value in table.items():
            if key not in _RELAY_KEYS and value not in (None, [], {}, ()):
                yield ("tables", i, key), "means nothing to a relay, which passes rows on unchanged"
