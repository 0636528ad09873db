"""Generates the Python code that reads the images of one table.

A record names neither the lengths nor the branches of its values beforehand, so each has to be
gone over. In the records of one table a column's values mostly begin alike: with the same branch
and the same charset or precision (see `setl.codec.dts.image.Form`). So the columns are written out
one behind the other, each as one comparison of bytes, one length and one slice; whatever is not of
its column's form goes through ``learn``, which reads any value.

No text of a stream gets into it: bytes and functions stand under names.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from types import CodeType
from typing import Any, Final

from setl.codec.dts.image import LARGEST_SIGNED, Form, plain_digits, signed_digits
from setl.codec.dts.scan import Misread

_MAX_TEXTS: Final = 1024

_FUNCTION: Final = """\
def image(data, at):
    starts = data.startswith
    if not starts(listed, at):
        raise Misread
    at += {front}
{columns}
{behind}
"""

_WHOLE: Final = """\
    if data[at]:
        raise Misread
    return {result}, at + 1"""

# A value behind its length, of one or two bytes; in front of it stands `front`.
_DATA: Final = """\
    if {begins}:
        begin = at + {size}
        size = data[begin]
        begin += 1
        if size > 127:
            size = size & 127 | data[begin] << 7
            begin += 1
        end = begin + (size >> 1)
        if size & 1 or size > 16383{tail}:
            {value}, at = learn(data, at, {i})
        else:
            {take}
            at = end{behind}
    elif data[at]:
        {value}, at = learn(data, at, {i})
    else:
        {null}
        at += 1
"""

# `signed_digits`, without the call.
_SIGNED: Final = """\
v{i} = int(data[begin:end])
            if v{i} > largest:
                raise Misread"""

# `plain_digits`, likewise.
_PLAIN: Final = """\
v{i} = data[begin:end].decode()
            if "E" in v{i} or "e" in v{i}:
                raise Misread"""

# A value of eight bytes.
_FIXED: Final = """\
    if {begins} and starts(tail{i}, at + 9):
        {take}
        at += {whole}
    elif data[at]:
        {value}, at = learn(data, at, {i})
    else:
        {null}
        at += 1
"""

# A value that a function reads; None if it is not as usual.
_READ: Final = """\
    if {begins}:
        found = {read}{i}(data, at + {size})
        if found is None:
            {value}, at = learn(data, at, {i})
        else:
            {value}, at = found
    elif data[at]:
        {value}, at = learn(data, at, {i})
    else:
        {null}
        at += 1
"""

_UNKNOWN: Final = """\
    if data[at]:
        {value}, at = learn(data, at, {i})
    else:
        {null}
        at += 1
"""


def image_text(
    forms: Sequence[Form],
    listed: bytes,
    wanted: Sequence[int],
    *,
    single: bool = False,
    early: bool = False,
) -> tuple[str, dict[str, Any]]:
    """A function ``image(data, at)``: values of the image at an offset, and the offset behind it.

    It raises one of `setl.codec.dts.scan.MISREADS`. It has looked at the image's last byte; with
    `early` it may have come to an offset beyond the end of the data.

    Args:
        forms: of all columns of the image.
        listed: how an image of so many columns begins.
        wanted: indexes of the columns whose values are given, in that order.
        single: give the value of the one column that is wanted, not a tuple.
        early: leave what is behind these values unread; the offset is that behind them.

    Returns:
        The function's text, and what it names; ``learn`` is to be added.
    """
    names: dict[str, Any] = {"listed": listed, "Misread": Misread}
    asked = frozenset(wanted)
    read = forms[: max(wanted) + 1] if early else forms
    columns = "".join([_column(i, form, asked, names) for i, form in enumerate(read)])
    result = f"v{wanted[0]}" if single else "(" + "".join(f"v{i}, " for i in wanted) + ")"
    behind = f"    return {result}, at" if early else _WHOLE.format(result=result)
    return _FUNCTION.format(front=len(listed), columns=columns, behind=behind), names


def compiled(text: str, names: dict[str, Any]) -> Any:
    """The function of `image_text`."""
    exec(_code(text), names)  # noqa: S102 - made of numbers and names, see the module
    return names["image"]


@lru_cache(maxsize=_MAX_TEXTS)
def _code(text: str) -> CodeType:
    # Tables of the same shape have the same text, and compiling takes milliseconds.
    return compile(text, "<images of a table>", "exec")


def _column(i: int, form: Form, wanted: Collection[int], names: dict[str, Any]) -> str:
    taken = i in wanted
    value = f"v{i}" if taken else "_"
    null = f"v{i} = None" if taken else "pass"
    names[f"front{i}"], names[f"tail{i}"] = form.front, form.tail
    # Without a call, where one byte is all.
    begins = f"data[at] == {form.front[0]}" if len(form.front) == 1 else f"starts(front{i}, at)"
    if form.read is not None and form.end is not None:
        read = "read" if taken else "end"
        names[f"{read}{i}"] = form.read if taken else form.end
        return _READ.format(
            i=i, begins=begins, size=len(form.front), value=value, null=null, read=read
        )
    if form.decode is None:
        return _UNKNOWN.format(i=i, value=value, null=null)
    names[f"decode{i}"] = form.decode
    if form.fixed:
        take = f"v{i} = decode{i}(data, at + 1)[0]" if taken else "pass"
        whole = 9 + len(form.tail)
        return _FIXED.format(i=i, begins=begins, value=value, null=null, take=take, whole=whole)
    if not taken:
        take = "pass"
    elif form.decode is bytes:
        take = f"v{i} = data[begin:end]"
    elif form.decode is bytes.decode:
        take = f"v{i} = data[begin:end].decode()"
    elif form.decode is plain_digits:
        take = _PLAIN.format(i=i)
    elif form.decode is signed_digits:
        names["largest"] = LARGEST_SIGNED
        take = _SIGNED.format(i=i)
    else:
        take = f"v{i} = decode{i}(data[begin:end])"
    return _DATA.format(
        i=i,
        begins=begins,
        size=len(form.front),
        value=value,
        null=null,
        take=take,
        tail=f" or not starts(tail{i}, end)" if form.tail else "",
        behind=f" + {len(form.tail)}" if form.tail else "",
    )
