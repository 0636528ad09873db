"""Decodes the rows of DTS records, in Spark tasks and, for rows of ``retl``, in the driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from setl.codec.columns.images import FoundRows, RowForm
from setl.codec.dts.columns.finding import find_rows
from setl.codec.dts.columns.form import DtsForm
from setl.codec.dts.described import KEYS_TAG, NOTHING, described
from setl.codec.dts.header import row_name
from setl.codec.dts.middle import NEVER, source_end
from setl.codec.dts.row_chunks import first_record, record_begin, records_of, rejoined
from setl.codec.dts.scan import MISREADS, Misread, positions_end
from setl.codec.dts.table_identity import (
    OPERATION_BYTES,
    OPERATIONS,
    TableIdentity,
    read_identity,
)
from setl.codec.dts.table_rows import DtsTable
from setl.codec.dts.wire import MALFORMED, read_common
from setl.errors import DataError
from setl.model.change import DecodedRows, Op
from setl.model.schema import RowSchema

_MAX_TABLES: Final = 1024


class DtsRowCodec:
    """A `setl.codec.row_codec.RowCodec` for payloads of `setl.codec.dts.header.read_header`.

    It remembers, for each table and list of columns, what their values were so far, so that
    a column that is NULL in a record keeps its kind.
    """

    def __init__(self, *, logical_names: bool = True) -> None:
        """Know nothing yet.

        Args:
            logical_names: whether rows of DRDS and PolarDB-X are of their logical table, see
                `setl.codec.dts.header.row_name`; the headers must have been read likewise.
        """
        self._logical_names = logical_names
        self._tables: dict[TableIdentity, DtsTable] = {}
        # What the last record said between its positions and its images (see `middle`), and what
        # of.
        self._origin = self._said = NEVER
        self._described = NOTHING
        self._last = DtsTable(TableIdentity(("", ""), "", ()))

    def records(self, payload: bytes) -> Sequence[tuple[int, bytes]]:
        """See `setl.codec.row_codec.RowCodec.records`."""
        return records_of(payload)

    def joins(self, payload: bytes, offset: int) -> bool:  # noqa: ARG002 - all do
        """See `setl.codec.row_codec.RowCodec.joins`."""
        return True

    def likely_inserts(self, payload: bytes) -> bool:
        """See `setl.codec.row_codec.RowCodec.likely_inserts`; the first record speaks for all."""
        try:
            offsets = positions_end(payload, record_begin(payload))
            return OPERATION_BYTES.get(payload[source_end(payload, offsets)]) is Op.INSERT
        except MISREADS:
            return False

    def operation(self, payload: bytes) -> tuple[Op, bool] | None:  # noqa: ARG002
        """See `setl.codec.row_codec.RowCodec.operation`; no record tells of foreign keys."""
        return None

    def join(self, payloads: Sequence[tuple[int, bytes]]) -> bytes:
        """See `setl.codec.row_codec.RowCodec.join`."""
        return rejoined(payloads)

    def row_form(self, payload: bytes, context: tuple[bytes, ...]) -> DtsForm | None:
        """See `setl.codec.row_codec.RowCodec.row_form`; for the table of the first record.

        Of a table that was not seen before the first record is decoded.
        """
        begin = record_begin(payload)
        try:
            self._images_at(payload, begin)
        except MISREADS:
            return None
        table = self._last
        form = table.form()
        if form is None:
            self.decode(first_record(payload), context)
            form = table.form()
        return form

    def likely_rows(self, payload: bytes, context: tuple[bytes, ...], size: int) -> float:  # noqa: ARG002
        """See `setl.codec.row_codec.RowCodec.likely_rows`."""
        return size / max(1, record_begin(payload) + len(first_record(payload)))

    def find_rows(self, form: RowForm, payloads: Sequence[tuple[int, bytes]]) -> FoundRows:
        """See `setl.codec.row_codec.RowCodec.find_rows`."""
        if not isinstance(form, DtsForm):
            raise TypeError("these rows are no DTS records")
        return find_rows(form, payloads, logical_names=self._logical_names)

    def decode(
        self,
        payload: bytes,
        context: tuple[bytes, ...],  # noqa: ARG002
        *,
        keys_alone: bool = False,  # noqa: ARG002
    ) -> DecodedRows:
        """See `setl.codec.row_codec.RowCodec.decode`; a record needs no context."""
        try:
            return self._read_by_hand(payload)
        except MISREADS:
            # Damaged, of a form that is not read by hand, or a value that cannot be decoded.
            return self._read_by_schema(payload)

    def schema(self, payload: bytes, context: tuple[bytes, ...]) -> RowSchema:
        """See `setl.codec.row_codec.RowCodec.schema`; what a column is, only its values say."""
        return self.decode(payload, context).schema

    def _read_by_hand(self, payload: bytes) -> DecodedRows:
        """Decode. Raises one of `MISREADS`, also where `_read_by_schema` finds nothing wrong."""
        op, at = self._images_at(payload, 0)
        table = self._last
        before = after = None
        if op is Op.INSERT:
            if payload[at]:
                raise Misread
            after, _ = table.read_image(payload, at + 1)
        else:
            before, at = table.read_image(payload, at)
            if op is Op.UPDATE:
                after, _ = table.read_image(payload, at)
            elif payload[at]:
                raise Misread
        # The last byte of the last image was looked at, so nothing was cut off.
        return DecodedRows(table.schema(), op, [(before, after)])

    def _images_at(self, payload: bytes, begin: int) -> tuple[Op, int]:
        """Operation and images of the record that begins there; its table is the last one then.

        What it says beside them is remembered, since the next one mostly says the same.
        """
        offsets = at = positions_end(payload, begin)
        if payload.startswith(self._origin, at):
            at += len(self._origin)
        else:
            at = source_end(payload, at)
            self._origin = payload[offsets:at]
        op = OPERATION_BYTES.get(payload[at])
        if op is None:
            raise Misread
        at += 1
        if not payload.startswith(self._said, at):
            end = self._described.end_of_same(payload, at)
            if end < 0:
                _, identity, end = read_identity(
                    payload, offsets, logical_names=self._logical_names
                )
                self._last = self._table(identity)
                self._described = described(payload, at, end)
            self._said = payload[at:end]
        return op, at + len(self._said)

    def _read_by_schema(self, payload: bytes) -> DecodedRows:
        """Decode, or say what is wrong."""
        try:
            record: dict[str, Any] = read_common(payload)
        except MALFORMED as error:
            raise DataError(
                f"not a DTS record: {len(payload)} bytes, {str(error) or type(error).__name__}"
            ) from error
        tags: dict[str, str] = record["tags"]
        name = row_name(record["objectName"] or "", tags if self._logical_names else {})
        if not isinstance(record["fields"], list):
            raise DataError("a DTS record of a row names no columns", table=".".join(name))
        fields = cast("list[dict[str, Any]]", record["fields"])
        columns = tuple([(field["name"], field["dataTypeNumber"]) for field in fields])
        table = self._table(TableIdentity(name, tags.get(KEYS_TAG, ""), columns))
        op = OPERATIONS.get(record["operation"])
        if op is None:
            raise DataError(f"a record of operation {record['operation']} holds no row")
        before = None if op is Op.INSERT else table.row(record["beforeImages"], "before")
        after = None if op is Op.DELETE else table.row(record["afterImages"], "after")
        return DecodedRows(table.schema(), op, [(before, after)])

    def _table(self, identity: TableIdentity) -> DtsTable:
        table = self._tables.get(identity)
        if table is None:
            if len(self._tables) >= _MAX_TABLES:
                self._tables.clear()
            table = self._tables[identity] = DtsTable(identity)
        return table
