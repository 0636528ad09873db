"""Changes inside a JSON value, as MySQL logs them with ``binlog_row_value_options=PARTIAL_JSON``.

A list of operations on the value that was there before, each with a path and, but for a removal,
a value. Source: ``sql-common/json_diff.cc`` in MySQL, and ``Json_path`` for the paths, which name
one location each: ``$.name."odd name"[2]``.
"""

from __future__ import annotations

import json
import re
from typing import Final, TypeAlias

from setl.codec.binlog.event import packed_integer
from setl.codec.binlog.values.mysql_json import DEEPEST, json_text, quoted

_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_TWICE: Final = (_INSERT, True)  # something is there already
_ELSEWHERE: Final = "a change of a JSON value is not about the value that was there before"
_LEG: Final = re.compile(
    r'\.(?P<quoted>"(?:[^"\\]|\\.)*")|\.(?P<name>[^."\[\]\s]+)'
    r"|\[(?P<cell>\d+)\]|\[last(?:-(?P<back>\d+))?\]",
    re.DOTALL,
)


class _Number(str):
    """A number as it is written; no Python type keeps that for all numbers."""

    __slots__ = ()


_Tree: TypeAlias = "bool | str | list[_Tree] | dict[str, _Tree] | None"


def applied(before: bytes, diffs: bytes) -> str:
    """The value after the changes, as JSON text.

    Args:
        before: the value before them, in MySQL's binary form.
        diffs: the changes, without the length in front of them.

    Raises:
        ValueError, LookupError: they are damaged, or not about this value.
    """
    tree = _tree(before)
    at = 0
    while at < len(diffs):
        operation = diffs[at]
        if operation > _REMOVE:
            raise ValueError(f"a JSON value was changed in an unknown way ({operation})")
        path, at = _piece(diffs, at + 1)
        value: _Tree = None
        if operation != _REMOVE:
            data, at = _piece(diffs, at)
            value = _tree(data)
        _apply(tree, operation, _legs(path.decode("utf-8")), value)
    return _text(tree)


def _tree(document: bytes) -> _Tree:
    text = json_text(document) if document else "null"
    return json.loads(text, parse_int=_Number, parse_float=_Number)


def _piece(data: bytes, at: int) -> tuple[bytes, int]:
    length, at = packed_integer(data, at)
    if at + length > len(data):
        raise ValueError("a change of a JSON value ends too early")
    return data[at : at + length], at + length


def _legs(path: str) -> list[str | int]:
    """Names and indexes; negative ones count from the end, -1 is the last."""
    legs: list[str | int] = []
    at = 1
    while at < len(path):
        found = _LEG.match(path, at)
        if found is None:
            raise ValueError(f"not a path in a JSON value: {path[:80]!r}")
        if found["quoted"]:
            legs.append(json.loads(found["quoted"], strict=False))
        elif found["name"]:
            legs.append(found["name"])
        else:
            legs.append(int(found["cell"]) if found["cell"] else -1 - int(found["back"] or 0))
        at = found.end()
    if path[:1] != "$" or not 0 < len(legs) <= DEEPEST:
        raise ValueError(f"not a path in a JSON value: {path[:80]!r}")
    return legs


def _apply(tree: _Tree, operation: int, legs: list[str | int], value: _Tree) -> None:
    for leg in legs[:-1]:
        tree = _at(tree, leg)
    leg = legs[-1]
    if operation != _INSERT:
        _at(tree, leg)  # there is something
    if isinstance(tree, list) and isinstance(leg, int):
        if operation == _REMOVE:
            del tree[leg]
        elif operation == _REPLACE:
            tree[leg] = value
        else:
            tree.insert(min(leg, len(tree)), value)  # behind the end is at the end
    elif isinstance(tree, dict) and isinstance(leg, str) and (operation, leg in tree) != _TWICE:
        if operation == _REMOVE:
            del tree[leg]
        else:
            tree[leg] = value
    else:
        raise ValueError(_ELSEWHERE)


def _at(tree: _Tree, leg: str | int) -> _Tree:
    if isinstance(tree, list) and isinstance(leg, int) and -len(tree) <= leg < len(tree):
        return tree[leg]
    if isinstance(tree, dict) and isinstance(leg, str) and leg in tree:
        return tree[leg]
    raise ValueError(_ELSEWHERE)


def _text(tree: _Tree) -> str:
    if isinstance(tree, _Number):
        return str(tree)
    if isinstance(tree, str):
        return quoted(tree)
    if isinstance(tree, list):
        return f"[{', '.join(map(_text, tree))}]"
    if isinstance(tree, dict):
        # The server keeps shorter names before longer ones.
        names = sorted(tree, key=lambda name: (len(name.encode()), name.encode()))
        return f"{{{', '.join(f'{quoted(name)}: {_text(tree[name])}' for name in names)}}}"
    return "null" if tree is None else "true" if tree else "false"
