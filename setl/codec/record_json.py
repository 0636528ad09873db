"""JSON of records, without what Python takes for JSON and others do not."""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")


DECODER: Final = json.JSONDecoder(parse_constant=_refuse)

UNREADABLE: Final = (ValueError, RecursionError)
"""What reading raises for anything but JSON in UTF-8."""


def parsed(data: bytes) -> Any:
    """What JSON says; raises one of `UNREADABLE`."""
    return DECODER.decode(data.decode())


def shape_of(data: bytes) -> str:
    """What bytes that are no JSON may be instead, for messages; no value of theirs."""
    if not data:
        return "it is empty"
    if data[0] == 0 and len(data) > 5:
        schema = int.from_bytes(data[1:5], "big")
        return f"it begins as Avro or Protobuf of a schema registry does (schema {schema})"
    return f"{len(data)} bytes that begin with 0x{data[:4].hex()}"
