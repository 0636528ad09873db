"""Compaction: only the last state of each key in a load is written (I11).

What survives
    For each key one thing: the row as it is in the end (an upsert), or that it is gone (a
    delete). With full images this is all there is to know. Replaying changes one by one also
    leaves each row as the last image that was written under its key, or removes it; what lay
    between is overwritten either way. An update that changes the key is a delete under the old
    key and an upsert under the new one, because that is what replaying it does to both.

Key swaps
    MySQL checks keys row by row, so two rows change places over a third key:

    ==================  ======================  ==============================================
    change              table replayed          survivors
    ==================  ======================  ==============================================
    (start)             1:a  2:b
    update 1:a → 0:a    0:a  2:b                delete 1, upsert 0:a
    update 2:b → 1:b    0:a  1:b                upsert 0:a, upsert 1:b, delete 2
    update 0:a → 2:a    1:b  2:a                upsert 1:b, delete 0, upsert 2:a
    ==================  ======================  ==============================================

    No row of a survivor depends on what the target held before, so nothing of the order of the
    changes is needed any more. In particular "delete 1" above is gone, because 1 was filled again.

    Other databases check keys at the end of a statement, and DTS may carry two rows that swap
    directly: update 1:a → 2:a, then update 2:b → 1:b. Taken one by one the second would move the
    row that has just arrived. It is told by its before image, which is not the row that the same
    record put there, so that row stays. (In different records nothing tells it from a row that
    was changed by something that is not in the stream, such as a dropped loopback transaction.)

What it asks of a sink
    The survivors of one load are the end state of a source that keeps its constraints, so they
    do not contradict each other; but one may contradict what the target still holds. If row 1
    gave up a unique value and row 2 took it, the target may see row 2 first. Or a key changed
    from ``a`` to ``A`` and the target takes both for one. Therefore all deletes of a load come
    before its upserts, and an upsert may have to remove rows of the same load that hold one of
    its unique values; no others, see `setl.systems.mysql.load.exact`.

Images with absent values
    A record may leave out columns (`ABSENT`). An after image is completed from its before image
    and from what is pending under the row's key; if values are still missing, the row survives
    as it is, and comes out in a group of its own whose schema has only the columns present. A
    key change of such a row is refused, since the missing values would be deleted under the old
    key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from setl.errors import DataError
from setl.model.change import ABSENT, DecodedRows, Op, Row, RowChange, Value, filled
from setl.model.schema import RowSchema
from setl.transform.columns import READ_AT_SOURCE, identity_indexes, key_indexes
from setl.transform.null_keys import Images, NullKeys
from setl.transform.survivors import SurvivorGroups, Survivors

_FULL_IMAGES = "Set binlog_row_image=FULL at the source, or subscribe to all columns"


class _Shape(NamedTuple):
    """A schema and how the key is taken out of its rows."""

    schema: RowSchema
    key: tuple[int, ...]
    # Gives the value of the key column where there is one, else a tuple of values.
    key_of: Callable[[Any], Any]
    # Place of the column that only routes documents, None without.
    routing: int | None

    def key_row(self, key: Any) -> Row:
        """What `key_of` gave, as a row of the key's values."""
        return (key,) if len(self.key) == 1 else key


_State = tuple[Row | None, int, _Shape]
"""What is pending under a key: the row or None for a delete, its version, its shape."""


class Compactor:
    """Takes the changes of one route in stream order, and gives the last state of each key."""

    def __init__(self, key: Sequence[str] = (), routing: str | None = None) -> None:
        """Start empty.

        Args:
            key: columns that identify a row, instead of the primary key; none for that.
            routing: a column that counts as part of the key, see `identity_indexes`; may be null.
        """
        self._key_names = tuple(key)
        self._routing = routing
        self._schema: RowSchema | None = None
        self._shapes: list[_Shape] = []
        # Its order is the order of the last changes: a state is taken out before a newer one
        # of its key is put in.
        self._pending: dict[Any, _State] = {}
        self._partial = False
        # Deletes under keys that were then filled again by partial rows, which must not take
        # their missing values from the row that was deleted.
        self._emptied: dict[Any, _State] = {}
        self._nulls = NullKeys(len(self._key_names))

    def __len__(self) -> int:
        """Number of keys pending."""
        return len(self._pending)

    def add(self, schema: RowSchema, change: RowChange) -> None:
        """Take one change in; see `add_many`."""
        images = [(change.before, change.after)]
        self.add_many(DecodedRows(schema, change.op, images), change.version)

    def add_many(self, decoded: DecodedRows, version: int) -> None:
        """Take the changes of one entry in, in their order.

        Args:
            decoded: the changes.
            version: the entry's place in the source, not below that of the call before.

        Raises:
            ConfigurationError: the table has no key.
            DataError: an image is missing, or lacks values that it cannot do without.
        """
        schema, op, images = decoded
        if schema is not self._schema:
            self._enter(schema)
        shape = self._shapes[-1]
        if self._nulls.concern(shape.key, images):
            for image in images:
                self._add_keyed(shape, *self._nulls.rest(schema, shape.key, op, image, version))
            return
        self._add_keyed(shape, op, images, version)

    def _add_keyed(self, shape: _Shape, op: Op, images: Images, version: int) -> None:
        if op is Op.DELETE:
            self._delete(shape, images, version)
            return
        key_of, pending, absent, update = shape.key_of, self._pending, ABSENT, op is Op.UPDATE
        # The hot loop: one call and one tuple for a row.
        for before, after in images:
            if after is None or absent in after:
                self._complete(shape, op, before, after, version)
                continue
            key = key_of(after)
            if update and before is not None and key_of(before) != key:
                self._leave(shape, before, after, version)
            if key in pending:
                del pending[key]
            pending[key] = (after, version, shape)

    def survivors(self) -> list[Survivors]:
        """What is left, one group for each schema and set of columns present.

        Deletes are in the group of the whole schema, which comes before those of its parts.

        Raises:
            DataError: a column that the mapping names as key is null.
        """
        for _, error in self._nulls.take():
            raise error
        groups: list[Survivors] = []
        for shape in self._shapes:
            groups += self._grouped(shape).found()
        return groups

    def _enter(self, schema: RowSchema) -> None:
        """Make the shape of `schema` the last one of the list."""
        for i, shape in enumerate(self._shapes):
            if shape.schema == schema:
                self._shapes.append(self._shapes.pop(i))
                break
        else:
            key = identity_indexes(schema, self._key_names, self._routing)
            own = key_indexes(schema, self._key_names)
            routing = key[-1] if key != own else None
            self._shapes.append(_Shape(schema, key, itemgetter(*key), routing))
        self._schema = schema

    def _delete(
        self, shape: _Shape, images: list[tuple[Row | None, Row | None]], version: int
    ) -> None:
        key_of, pending, absent = shape.key_of, self._pending, ABSENT
        for before, _ in images:
            if before is None:
                raise _no_image(shape, "a delete has no before image")
            if absent in before:
                _refuse_absent_key(shape, before)
            key = key_of(before)
            if key in pending:
                del pending[key]
            pending[key] = (None, version, shape)

    def _leave(self, shape: _Shape, before: Row, after: Row, version: int) -> None:
        """Delete the key that an update moves its row away from, if it is another one."""
        if ABSENT in before:
            _refuse_absent_routing(shape, before)
            before = filled(before, after)
        old = shape.key_of(before)
        if old == shape.key_of(after):
            return
        state = self._pending.pop(old, None)
        if (
            state is not None
            and state[0] is not None
            and state[1:] == (version, shape)
            and _contradict(state[0], before)
        ):
            # A direct swap: the same record has just put another row there.
            self._pending[old] = state
        else:
            self._pending[old] = (None, version, shape)

    def _complete(
        self, shape: _Shape, op: Op, before: Row | None, after: Row | None, version: int
    ) -> None:
        """Take an after image with absent values in, completed as far as possible."""
        if after is None:
            raise _no_image(shape, f"an {op.value} has no after image")
        before = before if op is Op.UPDATE else None
        row = after if before is None else filled(after, before)
        _refuse_absent_key(shape, row)
        key = old = shape.key_of(row)
        if before is not None:
            _refuse_absent_routing(shape, before)
            old = shape.key_of(filled(before, row))
        state = self._pending.get(old)
        if state is not None and state[0] is not None:
            row = filled(row, _as_shape(state[0], state[2], shape))
        if ABSENT in row:
            if old != key:
                raise DataError(
                    f"the key of a row of {shape.schema.name} changes, but the record does not"
                    f" say all of its values: {_absent_names(shape, row)}",
                    hint=f"{_FULL_IMAGES}. {READ_AT_SOURCE}",
                    table=shape.schema.name,
                    key=shape.key_row(old),
                )
            self._partial = True
            if state is not None and state[0] is None:
                self._emptied[key] = state
        if before is not None and old != key:
            self._leave(shape, before, row, version)
        self._pending.pop(key, None)
        self._pending[key] = (row, version, shape)

    def _grouped(self, shape: _Shape) -> SurvivorGroups:
        groups = SurvivorGroups(shape.schema, shape.key)
        whole, single, partial = groups.whole, len(shape.key) == 1, self._partial
        upserts = whole.own_upserts
        for key, (row, version, of) in self._pending.items():
            if of is not shape:
                continue
            if row is None:
                whole.deletes.append((key,) if single else key)
                whole.delete_versions.append(version)
            elif partial and ABSENT in row:
                emptied = self._emptied.get(key)
                if emptied is not None:
                    whole.deletes.append(shape.key_row(key))
                    whole.delete_versions.append(emptied[1])
                groups.add_partial(row, version)
            else:
                upserts.append(row)
                whole.upsert_versions.append(version)
        return groups

    def take_null_keys(self) -> list[tuple[RowSchema, Row | None, int, DataError]]:
        """Take out what is pending under keys that are null and must not be.

        Returns:
            For each the schema, the row (None for a delete), the version, and what is wrong.
        """
        taken = self._nulls.take()
        return [(found.schema, found.row, found.version, error) for found, error in taken]


def _as_shape(row: Row, of: _Shape, shape: _Shape) -> Row:
    """A row as far as another schema has its columns: the table changed between two records."""
    if of is shape:
        return row
    values: dict[str, Value] = dict(zip(of.schema.names, row, strict=True))
    return tuple(values.get(name, ABSENT) for name in shape.schema.names)


def _contradict(row: Row, image: Row) -> bool:
    """Whether two images cannot be of one row: some value differs that both have."""
    return any(
        v != w for v, w in zip(row, image, strict=True) if v is not ABSENT and w is not ABSENT
    )


def _refuse_absent_key(shape: _Shape, row: Row) -> None:
    if any(row[i] is ABSENT for i in shape.key):
        raise DataError(
            f"a record of {shape.schema.name} does not say which row it is about:"
            f" {_absent_names(shape, row)}",
            hint=_FULL_IMAGES,
            table=shape.schema.name,
        )


def _refuse_absent_routing(shape: _Shape, before: Row) -> None:
    if shape.routing is not None and before[shape.routing] is ABSENT:
        raise DataError(
            f"a record of {shape.schema.name} does not say by which value its document was routed"
            f" before: {shape.schema.names[shape.routing]} absent",
            hint=_FULL_IMAGES,
            table=shape.schema.name,
        )


def _absent_names(shape: _Shape, row: Row) -> str:
    absent = [n for n, v in zip(shape.schema.names, row, strict=True) if v is ABSENT]
    return f"{', '.join(absent)} absent"


def _no_image(shape: _Shape, what: str) -> DataError:
    return DataError(
        f"{what}, so the record cannot be applied", hint=_FULL_IMAGES, table=shape.schema.name
    )
