r"""The patterns of `from` and `to`: names with wildcards, and what is carried over.

A name is ``schema.table``. In `from`

- ``*`` stands for any text, also none,
- ``?`` for one character,
- ``[1-128]`` for a number in that range. Numbers are written as wide as the lower bound:
  ``[1-128]`` means 1, 2, … 128 and ``[001-128]`` means 001, 002, … 128,
- ``\`` takes the special meaning from the character after it, so that ``\.`` is a dot inside
  a name and ``\*`` a star.

In `to` only ``*`` and ``\`` have a meaning: each ``*`` is replaced by what the wildcard at the
same position in `from` stood for. Matching respects case, as MySQL does on Linux, and each ``*``
takes as little as it can, the first one first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from setl.channel.names.shadow_tables import possible_shadows

SYSTEM_SCHEMAS = frozenset({"information_schema", "mysql", "performance_schema", "retl", "sys"})
"""Schemas that are never replicated: the server's own, and setl's."""

_RANGE = re.compile(r"\[(\d{1,18})-(\d{1,18})\]")
_INDEX_FORBIDDEN = '\\/*?"<>|,#: '


class PatternError(ValueError):
    """A pattern is malformed; the text says how, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class AnyText:
    """A wildcard: any text (``*``), or with `single` one character (``?``)."""

    single: bool = False


@dataclass(frozen=True, slots=True)
class Range:
    """A wildcard: a number from `low` to `high`, padded with zeros to `width` digits."""

    low: int
    high: int
    width: int


Part = str | AnyText | Range
"""A piece of a name: literal text or a wildcard."""


@dataclass(frozen=True, slots=True)
class NamePattern:
    """One half of a pattern: a schema's or a table's name with wildcards.

    Attributes:
        parts: literal texts and wildcards, in order.
    """

    parts: tuple[Part, ...]

    @property
    def wildcards(self) -> int:
        """How many wildcards it has."""
        return sum(not isinstance(p, str) for p in self.parts)

    @property
    def literal(self) -> str | None:
        """The name it stands for, None if it has wildcards."""
        return None if self.wildcards else "".join(p for p in self.parts if isinstance(p, str))

    @property
    def folded(self) -> NamePattern:
        """The same pattern in lower case."""
        return NamePattern(tuple(p.lower() if isinstance(p, str) else p for p in self.parts))

    def match(self, name: str) -> tuple[str, ...] | None:
        """What each wildcard stands for in `name`, None if it does not match.

        A ``*`` takes as little as it can, the first one first.
        """
        return _match(self.parts, name, 0, 0, set())


@dataclass(frozen=True, slots=True)
class TablePattern:
    """A `from`: which schemas and which of their tables.

    Attributes:
        schema: which schemas.
        table: which of their tables.
        besides: the tables it leaves out; two patterns that differ only here are equal.
    """

    schema: NamePattern
    table: NamePattern
    besides: tuple[TablePattern, ...] = field(default=(), compare=False)

    @property
    def wildcards(self) -> int:
        """How many wildcards both halves have."""
        return self.schema.wildcards + self.table.wildcards

    @property
    def exact(self) -> tuple[str, str] | None:
        """The one (schema, table) it stands for, None if it has wildcards."""
        schema, table = self.schema.literal, self.table.literal
        return None if schema is None or table is None else (schema, table)

    def leaves_out(self, schema: str, table: str) -> bool:
        """Whether a table, or the one whose online schema change it belongs to, is left out."""
        if not self.besides:
            return False
        names = (table, *(shadow.table for shadow in possible_shadows(table)))
        return any(p.match(schema, name) is not None for p in self.besides for name in names)

    def match(self, schema: str, table: str) -> tuple[str, ...] | None:
        """What each wildcard stands for, None if it does not match; see `is_system`."""
        in_schema = self.schema.match(schema)
        if in_schema is None or self.leaves_out(schema, table):
            return None
        in_table = self.table.match(table)
        return None if in_table is None else in_schema + in_table

    def matches_but_for_case(self, schema: str, table: str) -> bool:
        """Whether it would match if case did not matter; what it leaves out counts, too."""
        halves = ((self.schema, schema), (self.table, table))
        return all(half.folded.match(name.lower()) is not None for half, name in halves)


@dataclass(frozen=True, slots=True)
class TargetPattern:
    """A `to`: (schema, table) for MySQL, or ("", index); each ``*`` is carried over.

    Attributes:
        schema: None keeps the source's schema.
        table: the table or index.
    """

    schema: NamePattern | None
    table: NamePattern

    @property
    def wildcards(self) -> int:
        """How many ``*`` it has."""
        return (self.schema.wildcards if self.schema else 0) + self.table.wildcards

    def fill(self, schema: str, carried: tuple[str, ...]) -> tuple[str, str]:
        """The (schema, table) for a source schema and the texts of its wildcards."""
        in_schema = self.schema.wildcards if self.schema else 0
        new_schema = schema if self.schema is None else _fill(self.schema, carried[:in_schema])
        return new_schema, _fill(self.table, carried[in_schema:])


def is_system(schema: str) -> bool:
    """Whether a schema is the server's or setl's own, in any spelling."""
    return schema.lower() in SYSTEM_SCHEMAS


def parse_from(text: str) -> TablePattern:
    """Parse a `from`.

    Raises:
        PatternError: it is not ``schema.table``, or names a system schema.
    """
    pattern = parse_tables(text)
    schema = pattern.schema.literal
    if schema is not None and is_system(schema):
        raise PatternError("must not name a system schema, which is never replicated")
    return pattern


def parse_tables(text: str) -> TablePattern:
    """Parse a pattern for any tables, those of system schemas too.

    Raises:
        PatternError: it is not ``schema.table``.
    """
    halves = _split(text)
    if len(halves) != 2:
        raise PatternError(r"must be schema.table (write a dot inside a name as \.)")
    schema, table = (_parse(half) for half in halves)
    return TablePattern(schema, table)


def parse_table_target(text: str, source: TablePattern) -> TargetPattern:
    """Parse a `to` for MySQL: ``schema.table``, or ``table`` to keep the schema.

    Raises:
        PatternError: it is malformed, names a system schema, or has another number of ``*``
            than `source` has wildcards.
    """
    halves = _split(text)
    if len(halves) not in {1, 2}:
        raise PatternError(r"must be schema.table or table (write a dot inside a name as \.)")
    names = [_parse(half, only_star=True) for half in halves]
    target = TargetPattern(names[0] if len(names) == 2 else None, names[-1])
    if target.schema and target.schema.literal is not None and is_system(target.schema.literal):
        raise PatternError("must not name a system schema, which setl keeps for itself")
    return _same_wildcards(target, source)


def parse_index_target(text: str, source: TablePattern) -> TargetPattern:
    """Parse a `to` for Elasticsearch: an index name, whose dots need no backslash.

    Raises:
        PatternError: no index can have such a name, or it has another number of ``*`` than
            `source` has wildcards.
    """
    target = TargetPattern(None, _parse(text, only_star=True))
    # Stands for carried-over text, which is checked when it is known.
    sample = _fill(target.table, ("x",) * target.wildcards)
    if reason := index_problem(sample):
        raise PatternError(reason)
    return _same_wildcards(target, source)


def index_problem(name: str) -> str:
    """Why Elasticsearch would refuse an index of this name; "" if it would not.

    Source: Elasticsearch reference, "Create index API", path parameters.
    """
    if not name or name in {".", ".."}:
        return "must be an index name"
    if name != name.lower():
        return "must be in lower case, as every index name is"
    if bad := sorted({c for c in name if c in _INDEX_FORBIDDEN}):
        shown = " ".join("a space" if c == " " else c for c in bad)
        return f"must not have {shown} in it, which an index name cannot have"
    if name[0] in "-_+":
        return "must not start with -, _ or +, as no index name can"
    if len(name.encode()) > 255:
        return "must be at most 255 bytes long, as every index name is"
    return ""


def escape(name: str) -> str:
    """A schema's or table's name as a pattern that stands for just it."""
    return re.sub(r"([\\.*?\[])", r"\\\1", name)


def _same_wildcards(target: TargetPattern, source: TablePattern) -> TargetPattern:
    if target.wildcards and target.wildcards != source.wildcards:
        raise PatternError(
            f"has {target.wildcards} * where `from` has {source.wildcards} wildcards;"
            " write as many, or none to bring all tables together"
        )
    return target


def _split(text: str) -> list[str]:
    """Cut at dots that no backslash precedes; the backslashes stay."""
    halves = [""]
    escaped = False
    for char in text:
        if char == "." and not escaped:
            halves.append("")
        else:
            halves[-1] += char
        escaped = char == "\\" and not escaped
    return halves


def _parse(text: str, *, only_star: bool = False) -> NamePattern:
    parts: list[Part] = []
    literal = ""
    at = 0
    while at < len(text):
        char, width = text[at], 1
        wildcard: Part | None = None
        if char == "\\":
            if at + 1 == len(text):
                raise PatternError("must not end with a backslash")
            literal, width = literal + text[at + 1], 2
        elif char in "?[" and only_star:
            raise PatternError(f"must not have {char} in it; only * carries something over")
        elif char in "*?":
            wildcard = AnyText(single=char == "?")
        elif char == "[":
            wildcard, width = _parse_range(text, at)
        else:
            literal += char
        if wildcard is not None:
            parts += [literal, wildcard] if literal else [wildcard]
            literal = ""
        at += width
    if literal:
        parts.append(literal)
    if not parts or "\0" in text:
        raise PatternError("must not leave a name empty")
    return NamePattern(tuple(parts))


def _parse_range(text: str, at: int) -> tuple[Range, int]:
    found = _RANGE.match(text, at)
    if found is None:
        raise PatternError(r"must write a range of numbers as [1-128] (a bracket itself as \[)")
    low, high = int(found.group(1)), int(found.group(2))
    if low > high:
        raise PatternError(f"must not have the range {found.group()}, which is empty")
    return Range(low, high, len(found.group(1))), len(found.group())


def _match(
    parts: tuple[Part, ...], name: str, part: int, at: int, dead: set[tuple[int, int]]
) -> tuple[str, ...] | None:
    """Match `parts[part:]` with `name[at:]`; `dead` keeps what failed, so that it ends soon."""
    if part == len(parts):
        return () if at == len(name) else None
    if (part, at) in dead:
        return None
    for end in _ends(parts[part], name, at):
        rest = _match(parts, name, part + 1, end, dead)
        if rest is not None:
            return rest if isinstance(parts[part], str) else (name[at:end], *rest)
    dead.add((part, at))
    return None


def _ends(part: Part, name: str, at: int) -> Iterator[int]:
    """Where in `name` a part that begins at `at` can end, shortest first."""
    if isinstance(part, str):
        if name.startswith(part, at):
            yield at + len(part)
    elif isinstance(part, AnyText):
        if not part.single:
            yield from range(at, len(name) + 1)
        elif at < len(name):
            yield at + 1
    else:
        for end in range(at + 1, len(name) + 1):
            if name[end - 1] not in "0123456789":
                return
            if _in_range(part, name[at:end]):
                yield end


def _in_range(wildcard: Range, digits: str) -> bool:
    number = int(digits)
    return wildcard.low <= number <= wildcard.high and str(number).zfill(wildcard.width) == digits


def _fill(pattern: NamePattern, carried: tuple[str, ...]) -> str:
    texts = iter(carried)
    return "".join(p if isinstance(p, str) else next(texts) for p in pattern.parts)
