"""Ids and routing of documents, made of a row's key.

An id is text with the key's values in it. Numbers are written in decimal, bytes in base64, times
as rows hold them. Different keys have different ids: where there is more than one value,
backslashes in them are doubled, and in all values but the first each character of the text that
stands between values gets a backslash in front. So an id can be read from its end: the last such
character with an even number of backslashes before it ends the text before the last value.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence

from setl.errors import DataError
from setl.model.change import ABSENT, Row, Value
from setl.model.document import DocumentForm

_DIGITS = 21  # of a whole number of 64 bits, and more: its sign
MAX_ID_BYTES = 512
"""Clusters take no longer document ids."""


_EMPTY = (
    'Write some text around the key, such as `id: "k{column}"` in the table\'s entry, with the name'
    " of the key column, and load the index again. Or have such rows put aside, with `faulty_rows:"
    " dead_letter`"
)
_LONG = (
    "Name shorter columns under `key`, if others are unique and never null. Or have such rows put"
    " aside, with `faulty_rows: dead_letter`"
)


class NoSuchIdError(DataError):
    """No document can have the id of this key, so that there is none to delete."""


def document_id(key: Row, form: DocumentForm | None = None) -> str:
    """The ``_id`` of the document for a row with this key.

    Args:
        key: the key's values.
        form: how they become an id; None joins them with commas.

    Raises:
        NoSuchIdError: a key value is NULL, or the id is empty or longer than clusters allow.
        DataError: a key value is missing.
    """
    form = form or DocumentForm.of_key(len(key))
    parts = [_written(key[i]) for i in form.values]
    if len(parts) > 1:
        parts = _escaped(parts, form.separators)
    text = form.texts[0] + "".join(
        part + after for part, after in zip(parts, form.texts[1:], strict=True)
    )
    if not text:
        raise NoSuchIdError("a document's id is empty", hint=_EMPTY)
    if len(text.encode("utf-8", "surrogatepass")) > MAX_ID_BYTES:
        raise NoSuchIdError(
            f"a document's id has more than {MAX_ID_BYTES} bytes", hint=_LONG, key=text[:100]
        )
    return text


def document_ids(columns: Sequence[Sequence[Value]], form: DocumentForm | None) -> list[str]:
    """`document_id` of many keys, given a column of the key at a time.

    Raises:
        DataError: as `document_id`, for any of them.
    """
    form = form or DocumentForm.of_key(len(columns))
    used = [columns[i] for i in form.values]
    numbers = all(set(map(type, values)) == {int} for values in used)
    if numbers and _fits_numbers(form):
        template = "%d".join(text.replace("%", "%%") for text in form.texts)
        return [template % key for key in zip(*used, strict=True)]
    return [document_id(key, form) for key in zip(*columns, strict=True)]


def _fits_numbers(form: DocumentForm) -> bool:
    """Whether ids of whole numbers need no escaping, and none is too long or empty."""
    fixed = sum(len(text.encode()) for text in form.texts)
    longest = fixed + _DIGITS * len(form.values)
    return longest <= MAX_ID_BYTES and form.separators.isdisjoint("-0123456789")


def document_routing(key: Row, form: DocumentForm | None) -> str | None:
    """The ``routing`` of the document for a row with this key; None leaves it to its id.

    NULL and empty text route nowhere: a cluster takes an empty routing for none.

    Raises:
        DataError: the value is missing.
    """
    if form is None or form.routing is None or key[form.routing] is None:
        return None
    return _written(key[form.routing]) or None


def _written(value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if value is None:
        raise NoSuchIdError("a column that identifies the document is NULL")
    if value is ABSENT:
        raise DataError("a column that identifies the document is missing")
    # Servers take -0.0 and 0.0 for one key, though they keep them apart: the sum is 0.0 for both.
    return repr(value + 0.0 if isinstance(value, float) else value)


def _escaped(parts: Sequence[str], separators: frozenset[str]) -> list[str]:
    marked = {ord(c): f"\\{c}" for c in separators}
    first, *others = (part.replace("\\", "\\\\") for part in parts)
    return [first, *(part.translate(marked) for part in others)]
