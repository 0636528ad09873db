"""Writes the first file of a channel: a definition, with what was found beside what it is about.

Pure. Comments are what makes it a file for people, so it is written here line by line and not by
a YAML library.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import yaml

from setl.channel.names.patterns import escape
from setl.channel.server_url import ServerUrl

_WIDTH = 98
_INVENTED = "              # nobody has named it: change it, then run `setl check`"
_PLAIN = re.compile(r"\$\{\w+(?::-[^}\s]*)?\}|[A-Za-z_/][\w./:@-]*|\d+(?:\.\d+){3}", re.ASCII)
_OUTSIDE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Remark:
    """What a file says beside something.

    Attributes:
        text: what was found, as one line.
        hints: what to do about it.
    """

    text: str
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstTable:
    """A table of the source.

    Attributes:
        schema: its database.
        table: its name.
        key: the columns that identify a row; empty for none, or if nobody knows.
        to: the index that it goes to, "" where the default serves.
        left_out: why it cannot be mapped at all, "" if it can.
    """

    schema: str
    table: str
    key: tuple[str, ...] = ()
    to: str = ""
    left_out: str = ""

    @property
    def name(self) -> str:
        """As messages name it."""
        return f"{self.schema}.{self.table}"

    @property
    def pattern(self) -> str:
        """As `from` names it."""
        return f"{escape(self.schema)}.{escape(self.table)}".replace("${", "$${")

    @property
    def mapping(self) -> dict[str, str]:
        """Its entry under `tables`."""
        return {"from": self.pattern, **({"to": self.to} if self.to else {})}


@dataclass(frozen=True, slots=True)
class FirstFile:
    """The first file of a channel with one pipeline.

    Attributes:
        channel: its name.
        source: the source's fields.
        target: the target's fields.
        tables: the tables, in order.
        invented: whether nobody has named the target.
    """

    channel: str
    source: Mapping[str, Any]
    target: Mapping[str, Any]
    tables: tuple[FirstTable, ...]
    invented: bool = False

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""
        return f"to-{self.target['type']}"

    @property
    def mapped(self) -> tuple[FirstTable, ...]:
        """The tables that are not left out."""
        return tuple(table for table in self.tables if not table.left_out)

    @property
    def definition(self) -> dict[str, Any]:
        """The same as the channel file has it."""
        return {
            "channel": self.channel,
            "pipelines": [
                {
                    "name": self.pipeline,
                    "source": dict(self.source),
                    "target": dict(self.target),
                    "tables": [table.mapping for table in self.mapped],
                }
            ],
        }


def channel_name(source: ServerUrl) -> str:
    """What a channel is called that reads a server: as its database, or else its host."""
    name = source.schemas[0] if len(source.schemas) == 1 else str(source.fields["host"])
    return _OUTSIDE.sub("-", name).strip("-._") or "channel"


def password_variable(channel: str, end: str) -> str:
    """The environment variable of a password, such as ``SHOP_SOURCE_PASSWORD``."""
    name = re.sub(r"[^A-Z0-9]+", "_", f"{channel}_{end}_password".upper())
    # Variables that begin so are the node's own, and no channel file may use them.
    return f"DB_{name}" if name.startswith("SETL_") or name[0].isdigit() else name


def fields_of(server: ServerUrl, variable: str) -> dict[str, Any]:
    """The fields of an endpoint, with the reference to its password behind the account."""
    if "user" not in server.fields:
        return dict(server.fields)
    password = server.password or f"${{{variable}}}"
    found: dict[str, Any] = {}
    for name, value in server.fields.items():
        found[name] = value
        if name == "user":
            found["password"] = password
    return found


def invented_target(channel: str) -> dict[str, Any]:
    """A target to be changed, for a channel of which only the source is known."""
    prefix = password_variable(channel, "target").removesuffix("_PASSWORD")
    return {
        "type": "mysql",
        "host": f"${{{prefix}_HOST:-target.example.com}}",
        "port": 3306,
        "user": "retl",
        "password": f"${{{prefix}_PASSWORD}}",
    }


def with_indexes(tables: Sequence[FirstTable]) -> list[FirstTable]:
    """The same tables for indexes: those of one name in several databases go apart."""
    names = [table.table.lower() for table in tables]
    return [
        FirstTable(t.schema, t.table, t.key, f"{t.schema}-{t.table}".lower())
        if names.count(t.table.lower()) > 1
        else t
        for t in tables
    ]


def written(file: FirstFile, remarks: Mapping[str, Sequence[Remark]]) -> str:
    """The file's text.

    Args:
        file: what it says.
        remarks: by the table's name, or ``source`` and ``target``.
    """
    return "\n".join(_lines(file, remarks)) + "\n"


def _lines(file: FirstFile, remarks: Mapping[str, Sequence[Remark]]) -> Iterator[str]:
    name = f"{file.channel}.yaml"
    yield "# yaml-language-server: $schema=channel.schema.json"
    yield "#"
    yield "# Written by `setl init`, with all tables that it saw. Comments such as `error …` say"
    yield "# what `setl check` found at that time; delete them once that is fixed."
    yield "#"
    yield f"#   setl check {name}      what is missing, here and on the servers"
    yield f"#   setl apply {name}      store it in ZooKeeper"
    yield f"#   setl start {file.channel}"
    yield "#"
    yield "# ${NAME} stands for an environment variable of the nodes. References are stored as they"
    yield "# are, so no password ever lies in ZooKeeper."
    yield ""
    yield f"channel: {_scalar(file.channel)}"
    yield ""
    yield "pipelines:"
    yield f"  - name: {file.pipeline}"
    yield "    source:"
    yield from _fields(file.source)
    if "start" not in file.source:
        yield "      start: latest      # {load: true} loads the existing rows first"
    yield from _remarks(remarks.get("source", ()), 6)
    yield "    target:" + (
        "  # nobody has named it: change it, then run `setl check`" * file.invented
    )
    yield from _fields(file.target)
    yield from _remarks(remarks.get("target", ()), 6)
    yield "    tables:"
    for table in file.tables:
        yield from _table(table, remarks.get(table.name, ()))


def _fields(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        yield f"      {name}: {_flow(value)}"


def _flow(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_scalar, cast('list[object]', value)))}]"
    return _scalar(value)


def _table(table: FirstTable, remarks: Sequence[Remark]) -> Iterator[str]:
    entry = f"- from: {_scalar(table.pattern)}"
    if table.left_out:
        yield f"      # {entry}"
        yield from _remarks([Remark(f"left out: {table.left_out}")], 6)
        return
    key = f"  # key: {', '.join(map(_one_line, table.key))}" if table.key else ""
    yield f"      {entry}{key}"
    if table.to:
        yield f"        to: {_scalar(table.to)}"
    yield from _remarks(remarks, 8)


def _remarks(remarks: Sequence[Remark], indent: int) -> Iterator[str]:
    before = " " * indent + "# "
    for remark in remarks:
        yield from _wrapped(remark.text, before, before)
        for hint in remark.hints:
            yield from _wrapped(hint, f"{before}  → ", f"{before}    ")


def _wrapped(text: str, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        _one_line(text), _WIDTH, initial_indent=first, subsequent_indent=rest,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _one_line(text: str) -> str:
    """The same without what would end a comment: names of columns may be of any letters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def _scalar(value: object) -> str:
    """A value as YAML writes it, plain where that is read as the same text."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str):
        return str(value)
    plain = _PLAIN.fullmatch(value) and yaml.safe_load(f"- {value}") == [value]
    return value if plain else json.dumps(value, ensure_ascii=False)
