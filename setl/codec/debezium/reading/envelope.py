"""Takes a record of Debezium apart: its schema, which repeats, and what it says.

With schemas, JsonConverter writes ``{"schema": …, "payload": …}``, and the schema is mostly the
larger part. It is the same, byte by byte, as long as the table is, so it is read once.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from setl.codec.record_json import DECODER, UNREADABLE, parsed, shape_of
from setl.errors import DataError

_MAX_SCHEMAS: Final = 256
_MAX_TRIED: Final = 16  # schemas that the next record is likely to have
_SCHEMA: Final = '{"schema":'
_PAYLOAD: Final = ',"payload":'

NO_JSON: Final = (
    "setl reads Debezium's JSON: set `key.converter` and `value.converter` of the connector to"
    " org.apache.kafka.connect.json.JsonConverter, with `schemas.enable=true`"
)


class Parts(NamedTuple):
    """A record.

    Attributes:
        schema: its schema as JSON, None without one.
        said: what it says.
        known_by: bytes that stand for the schema; "" without one.
    """

    schema: dict[str, Any] | None
    said: dict[str, Any]
    known_by: bytes = b""


class Envelopes:
    """Takes records apart. Holds nothing but schemas that it has read."""

    def __init__(self) -> None:
        """No schema is known yet."""
        self._schemas: dict[bytes, dict[str, Any]] = {}
        self._fronts: list[bytes] = []  # what stands before the payload, the last one first

    def parts(self, data: bytes) -> Parts:
        """The parts of a key or a value.

        Raises:
            DataError: it is no object of JSON.
        """
        try:
            for at, front in enumerate(self._fronts):
                if data.startswith(front) and data.endswith(b"}"):
                    if at:
                        self._fronts.insert(0, self._fronts.pop(at))
                    return Parts(
                        self._schemas[front], _object(parsed(data[len(front) : -1])), front
                    )
            return self._first(data)
        except UNREADABLE as error:
            reason = str(error) if data[:1] == b"{" else shape_of(data)
            raise DataError(f"not a record of Debezium: {reason}", hint=NO_JSON) from error

    def _first(self, data: bytes) -> Parts:
        """The parts of a record whose schema may be another one than the last."""
        text = data.decode()
        if text.startswith("{", len(_SCHEMA)) and text.startswith(_SCHEMA):
            schema, end = DECODER.raw_decode(text, len(_SCHEMA))
            if isinstance(schema, dict) and text.startswith(_PAYLOAD, end):
                front = text[: end + len(_PAYLOAD)].encode()
                said = _object(DECODER.decode(text[end + len(_PAYLOAD) : -1]))
                if len(self._schemas) >= _MAX_SCHEMAS:
                    self._schemas.clear()
                    self._fronts.clear()
                known = self._schemas.setdefault(front, cast("dict[str, Any]", schema))
                self._fronts = [front, *self._fronts[: _MAX_TRIED - 1]]
                return Parts(known, said, front)
        whole = _object(DECODER.decode(text))
        schema = whole.get("schema")
        if set(whole) == {"schema", "payload"} and (schema is None or isinstance(schema, dict)):
            said = _object(whole["payload"])
            known = None if schema is None else cast("dict[str, Any]", schema)
            return Parts(known, said, b"" if known is None else repr(known).encode())
        return Parts(None, whole)


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError("it is no object of JSON")  # noqa: TRY004 - one kind of error for all
    return cast("dict[str, Any]", value)
