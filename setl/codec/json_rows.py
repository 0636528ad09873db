"""What decoders of JSON records have in common: each record stands alone, and is read whole."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from setl.codec.columns.images import FoundRows, RowForm
from setl.codec.dts.row_chunks import record_begin, records_of, rejoined
from setl.codec.keyed_record import key_and_value
from setl.errors import DataError
from setl.model.change import DecodedRows, Op
from setl.model.schema import RowSchema

_GLANCE = 4096  # bytes at the end of a record in which its operation is looked for


class JsonRowCodec:
    """A `setl.codec.row_codec.RowCodec` for payloads of `setl.codec.keyed_record.keyed`."""

    @abstractmethod
    def decode_record(self, key: bytes | None, value: bytes) -> DecodedRows:
        """Decode one record; raises DataError."""
        ...

    @abstractmethod
    def is_insert(self, glance: bytes) -> bool:
        """Whether a record is of new rows, as far as its end, or all of it, tells."""
        ...

    def defaulted(self, value: bytes) -> Mapping[str, bool]:  # noqa: ARG002
        """Columns that may be NULL where a record has their default; whether this one has NULL.

        None of a format that has no defaults.

        Raises:
            DataError: it is no record of the format.
        """
        return {}

    def records(self, payload: bytes) -> Sequence[tuple[int, bytes]]:
        """See `setl.codec.row_codec.RowCodec.records`."""
        return records_of(payload)

    def joins(self, payload: bytes, offset: int) -> bool:  # noqa: ARG002 - all do
        """See `setl.codec.row_codec.RowCodec.joins`."""
        return True

    def join(self, payloads: Sequence[tuple[int, bytes]]) -> bytes:
        """See `setl.codec.row_codec.RowCodec.join`."""
        return rejoined(payloads)

    def likely_inserts(self, payload: bytes) -> bool:
        """See `setl.codec.row_codec.RowCodec.likely_inserts`; the last record speaks for all."""
        return self.is_insert(payload[max(record_begin(payload), len(payload) - _GLANCE) :])

    def operation(self, payload: bytes) -> tuple[Op, bool] | None:  # noqa: ARG002
        """See `setl.codec.row_codec.RowCodec.operation`; no record tells of foreign keys."""
        return None

    def row_form(self, payload: bytes, context: tuple[bytes, ...]) -> RowForm | None:  # noqa: ARG002
        """See `setl.codec.row_codec.RowCodec.row_form`; there is none."""
        return None

    def likely_rows(self, payload: bytes, context: tuple[bytes, ...], size: int) -> float:  # noqa: ARG002
        """See `setl.codec.row_codec.RowCodec.likely_rows`."""
        return 0

    def find_rows(self, form: RowForm, payloads: Sequence[tuple[int, bytes]]) -> FoundRows:  # noqa: ARG002
        """See `setl.codec.row_codec.RowCodec.find_rows`; without a form nobody asks."""
        raise TypeError("rows of JSON are decoded one by one")

    def decode(
        self,
        payload: bytes,
        context: tuple[bytes, ...],  # noqa: ARG002 - a record needs none
        *,
        keys_alone: bool = False,  # noqa: ARG002
    ) -> DecodedRows:
        """See `setl.codec.row_codec.RowCodec.decode`."""
        try:
            key, value = key_and_value(payload)
        except ValueError as error:
            raise DataError(f"not a record: {error}") from error
        return self.decode_record(key, value)

    def schema(self, payload: bytes, context: tuple[bytes, ...]) -> RowSchema:
        """See `setl.codec.row_codec.RowCodec.schema`."""
        return self.decode(payload, context).schema
