"""What Debezium itself wrote, see `tests.integration.record_debezium`."""

import gzip
import json
from functools import cache
from pathlib import Path
from typing import NamedTuple

from setl.codec.keyed_record import keyed

DATA = Path(__file__).parents[2] / "data" / "debezium"


class Recorded(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None

    @property
    def payload(self):
        return keyed(self.key, self.value or b"")


@cache
def recorded(settings):
    """Records of one of `SETTINGS`, in their order."""
    with gzip.open(DATA / f"{settings}.jsonl.gz", "rt", encoding="utf-8") as file:
        lines = [json.loads(line) for line in file]
    return [Recorded(each["topic"], _bytes(each["key"]), _bytes(each["value"])) for each in lines]


@cache
def expected():
    """What the tables held at the end, by table."""
    return json.loads((DATA / "expected.json").read_text())


def _bytes(text):
    return None if text is None else text.encode()
