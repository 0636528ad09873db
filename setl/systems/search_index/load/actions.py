"""Changes as the actions of a bulk request: pure bytes, rendered a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from json.encoder import encode_basestring

from setl.errors import DataError
from setl.model.change import Row, TargetChanges, Value
from setl.model.labels import is_marked, shown
from setl.printable import printable
from setl.systems.search_index.load.documents import (
    in_characters_outside,
    render_documents,
    rendered,
    template_of,
)
from setl.systems.search_index.load.ids import document_id, document_ids, document_routing

_Columns = Sequence[Sequence[Value]]


def render_actions(changes: TargetChanges) -> list[bytes]:
    """The bulk actions for changes of one index: deletes, then documents.

    Each is one action with its document, in lines that end: what ``_bulk`` reads. Versions are
    external, ``external_gte``: the server refuses what is older than what it holds and takes
    the same again (I12).

    Raises:
        DataError: a row has no such form; names index and key.
    """
    deletes: list[str] = []
    if changes.deletes:
        head = _head("delete", changes)
        positions = _positions(changes, list(zip(*changes.deletes, strict=True)))
        deletes = [head % each for each in zip(positions, changes.delete_versions, strict=True)]
    if not changes.upserts:
        try:
            return _encoded(deletes, ())
        except UnicodeEncodeError as error:
            raise _unsayable(changes) from error
    positions = _positions(changes, [[row[i] for row in changes.upserts] for i in changes.key])
    try:
        fields = rendered(changes.columns, changes.upserts, changes.document)
    except DataError:
        _name_row(changes)
        raise
    template = f"{_head('index', changes)}{template_of(changes.columns)}\n"
    upserts = [
        template % values
        for values in zip(positions, changes.upsert_versions, *fields, strict=True)
    ]
    try:
        return _encoded(deletes, upserts)
    except UnicodeEncodeError as error:
        rows = in_characters_outside(changes.key, changes.columns, changes.upserts)
        if rows != list(changes.upserts):
            return render_actions(replace(changes, upserts=rows))
        raise _unsayable(changes) from error


def _head(operation: str, changes: TargetChanges) -> str:
    """An action's first line for the ``%`` operator, with slots for `_positions` and a version."""
    index = encode_basestring(changes.target[1]).replace("%", "%%")
    return (
        f'{{"{operation}":{{"_index":{index},"_id":%s,"version":%d,'
        '"version_type":"external_gte"}}\n'
    )


def _positions(changes: TargetChanges, key: _Columns) -> list[str]:
    """Id and routing of each row as JSON text, given the columns of the key."""
    form = changes.document
    try:
        ids = map(encode_basestring, document_ids(key, form))
        if form is None or form.routing is None:
            return list(ids)
        routings = [document_routing(one, form) for one in zip(*key, strict=True)]
    except DataError:
        _name_key(changes, key)
        raise
    return [
        id_ if routing is None else f'{id_},"routing":{encode_basestring(routing)}'
        for id_, routing in zip(ids, routings, strict=True)
    ]


def _name_key(changes: TargetChanges, key: _Columns) -> None:
    for one in zip(*key, strict=True):
        try:
            document_id(one, changes.document)
            document_routing(one, changes.document)
        except DataError as error:
            key = ", ".join(map(str, one))[:200] or "''"
            raise error.at(**_position(changes), key=key) from None


def _position(changes: TargetChanges) -> dict[str, str]:
    of = {"table": changes.source} if changes.source else {}
    return {"index": changes.target[1], **of}


def _name_row(changes: TargetChanges) -> None:
    for row in changes.upserts:
        try:
            render_documents(changes.columns, (row,), changes.document)
        except DataError as error:
            key = document_id(tuple(row[i] for i in changes.key), changes.document)
            raise error.at(index=changes.target[1], key=key) from None


def _encoded(deletes: Sequence[str], upserts: Sequence[str]) -> list[bytes]:
    return [line.encode() for line in (*deletes, *upserts)]


def _unsayable(changes: TargetChanges) -> DataError:
    """The error for text that has no UTF-8 form."""
    value, where = _lone_surrogate(changes)
    if is_marked(value):
        return DataError(
            f"the value is {shown(value)}, and another value of its column has that text, too; a"
            " document does not distinguish them",
            hint="Correct the row at the source (UPDATE … SET the column to the label), or leave"
            " the column out",
            index=changes.target[1],
            **where,
        )
    return DataError(
        f"text has no characters in its character set: {printable(value)[:200]}",
        hint="Correct the text at the source, or leave the column out (`exclude`). With"
        " `faulty_rows: dead_letter` such rows are put aside until then",
        index=changes.target[1],
        **where,
    )


def _lone_surrogate(changes: TargetChanges) -> tuple[str, dict[str, str]]:
    """The first text that has no UTF-8 form, and where it is."""
    keys: list[Row] = [tuple(row[i] for i in changes.key) for row in changes.upserts]
    key_columns = tuple(changes.columns[i] for i in changes.key)
    for columns, key, row in (
        *((changes.columns, key, row) for key, row in zip(keys, changes.upserts, strict=True)),
        *((key_columns, key, key) for key in changes.deletes),
    ):
        for column, value in zip(columns, row, strict=True):
            if isinstance(value, str) and value.encode("utf-8", "ignore").decode() != value:
                text = ", ".join(shown(str(part)) for part in key)
                return value, {"column": column.name, "key": printable(text)}
    return "", {}
