"""Records of the formats in which each record stands alone, made as those who write them do.

Each format has a folder here, with its own tests, and `records.py` for the tests of all formats:

* `insert(number, table="orders", seconds=SECONDS)`, `delete(number)`, `truncate()`, `heartbeat()`:
  a record, key and value; rows have the column `id` alone
* `inserted(value)`: the ids of rows that a relay's record is the insert of
* `image(table, value)`: what a relay writes of the second column of a `BinlogTable`
* `OWN`: fields of a source and of a target that the format has by itself, each with another value
  than its default
* `READ`: what a target must say for setl to read what a relay has written; and the codec then
* `ZERO_DATES`: whether it has dates such as 0000-00-00
"""

import json
from importlib import import_module

from setl.channel.fields.kafka_formats import STANDALONE

FORMATS = [*STANDALONE]
SECONDS = 1_700_000_000


def records_of(format_):
    return import_module(f"tests.unit.formats.{format_}.records")


def written(value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode(errors="backslashreplace")  # half of a pair as JSON writes it
