"""Decides how a target is compared with what goes into it: by checksums, or row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from setl.bulk.checksums import Form, Formed, Normal
from setl.bulk.chunks import chunk_columns, cuts_begun
from setl.channel.routes.routing import Route
from setl.model.labels import print_alike
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.columns import ColumnPlan

_MOST_DIGITS: Final = 65  # of a DECIMAL
_INTEGER_DIGITS: Final = 20
_PROCESSED: Final = "rows are made by a processor"
_NO_KEY: Final = "no key of the source identifies its rows"
_NOT_ALIKE: Final = "the two sides do not sort their keys alike"

# Kinds that have a form in common. A FLOAT (4 bytes) has another number than the DOUBLE that is
# written alike, and JSON is text in one product.
_NORMALS: Final = (
    (frozenset({Kind.INTEGER, Kind.YEAR, Kind.BIT}), Normal.NUMBER),
    (frozenset({Kind.INTEGER, Kind.YEAR, Kind.DECIMAL}), Normal.DECIMAL),
    (frozenset({Kind.FLOAT}), Normal.FLOATING),
    (frozenset({Kind.TEXT, Kind.ENUM, Kind.SET}), Normal.TEXT),
    (frozenset({Kind.JSON}), Normal.TEXT),
    (frozenset({Kind.BINARY}), Normal.BYTES),
    (frozenset({Kind.GEOMETRY}), Normal.BYTES),
    (frozenset({Kind.DATE}), Normal.DATE),
    (frozenset({Kind.TIME}), Normal.CLOCK),
    (frozenset({Kind.DATETIME, Kind.TIMESTAMP}), Normal.MOMENT),
)
_UNCLEAR: Final = frozenset({"vector"})  # functions of text refuse it

# Numbers of collations that MySQL and MariaDB of all versions sort alike: latin1_swedish_ci,
# ascii_general_ci, utf8mb3_general_ci, utf8mb4_general_ci, utf8mb4_bin, latin1_bin, ascii_bin,
# utf8mb3_bin.
_SORTED_ALIKE: Final = frozenset({8, 11, 33, 45, 46, 47, 65, 83})

# Kinds whose order no server decides.
_ORDERED: Final = frozenset(
    {Kind.INTEGER, Kind.YEAR, Kind.DECIMAL, Kind.BINARY, Kind.DATE, Kind.DATETIME, Kind.TIMESTAMP,
     Kind.TIME}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """One side of a comparison, as far as the plan needs it.

    Attributes:
        schema: the table as its server describes it.
        text_order: see `ChecksummedTable.text_order`; "" if it does not matter.
    """

    schema: RowSchema
    text_order: str = ""


@dataclass(frozen=True, slots=True)
class ComparisonPlan:
    """How a target is compared with the one table that goes into it.

    Attributes:
        source_cut: the source's columns by which both sides can be cut into the same ranges;
            empty if they cannot.
        target_cut: the target's columns of the same meaning.
        source: the source's columns in the forms compared; empty for row by row.
        target: the target's, in the same order.
        why: why rows have to be read, "" if the servers can compute checksums.
        keys_may_move: whether a row may go into the target under a key of another range.
    """

    source_cut: tuple[Column, ...] = ()
    target_cut: tuple[Column, ...] = ()
    source: tuple[Formed, ...] = ()
    target: tuple[Formed, ...] = ()
    why: str = ""
    keys_may_move: bool = False

    @property
    def by_checksums(self) -> bool:
        """Whether the servers can compute checksums."""
        return not self.why

    @property
    def whole(self) -> str:
        """Why both sides cannot be cut into the same ranges, "" if they can."""
        return "" if self.source_cut else self.why


def plan_ranges(
    route: Route,
    mapping: ColumnPlan,
    source: RowSchema,
    ordered: Callable[[Sequence[tuple[Column, str]]], Sequence[Column]],
) -> ComparisonPlan:
    """The plan for a table whose target computes no checksums, but can be read in ranges.

    Args:
        route: by which the table goes there.
        mapping: how its columns are mapped.
        source: the table as its server describes it.
        ordered: see `OrderedTarget.ordered`.

    Raises:
        SetlError: the target cannot be asked.
    """
    if route.key or not source.key:
        return ComparisonPlan(why=_NO_KEY)
    theirs = chunk_columns(source)
    into = {index: c.name for c, index in zip(mapping.columns, mapping.sources, strict=True)}
    ours = ordered([(column, into[source.index[column.name]]) for column in theirs])
    if not ours:
        return ComparisonPlan(why=_NOT_ALIKE)
    cuts = theirs[: len(ours)], tuple(ours)
    if route.processor:
        return ComparisonPlan(*cuts, why=_PROCESSED, keys_may_move=True)
    return ComparisonPlan(*cuts, why="documents are made by tasks")


def plan_comparison(
    route: Route,
    mapping: ColumnPlan,
    source: ComparedTable,
    target: ComparedTable,
    names: Sequence[str],
) -> ComparisonPlan:
    """The plan for a table that alone goes into its target.

    Args:
        route: by which it goes there.
        mapping: how its columns are mapped.
        source: the source's side.
        target: the target's side.
        names: the target's columns that are compared.
    """
    if route.key or not source.schema.key:
        return ComparisonPlan(why=_NO_KEY)
    fed = {c.name.lower(): i for c, i in zip(mapping.columns, mapping.sources, strict=True)}
    cut = _cut(source, target, fed)
    cuts = tuple(one for one, _ in cut), tuple(other for _, other in cut)
    if not cut:
        return ComparisonPlan(why=_NOT_ALIKE)
    if route.processor:
        return ComparisonPlan(*cuts, why=_PROCESSED, keys_may_move=True)
    if route.expressions or route.where:
        return ComparisonPlan(*cuts, why="expressions are evaluated by Spark")
    sources: list[Formed] = []
    targets: list[Formed] = []
    for name in names:
        theirs = source.schema.columns[fed[name.lower()]]
        ours = target.schema.columns[target.schema.folded[name.lower()]]
        form = common_form(theirs, ours)
        if form is None:
            return ComparisonPlan(*cuts, why=f"the servers write {ours.name} in different ways")
        one, other = _spelled_alike(theirs, ours)
        sources.append(Formed(one, form))
        targets.append(Formed(other, form))
    return ComparisonPlan(*cuts, tuple(sources), tuple(targets))


def _cut(
    source: ComparedTable, target: ComparedTable, fed: dict[str, int]
) -> list[tuple[Column, Column]]:
    """The first columns of both keys that hold the same values in the same order.

    The target's have to be those of its primary key: they have an index, and no NULL, which no
    range holds.
    """
    cut: list[tuple[Column, Column]] = []
    targets = [target.schema.columns[i] for i in target.schema.key]
    for theirs, ours in zip(chunk_columns(source.schema), targets, strict=False):
        index = fed.get(ours.name.lower())
        if index is None or source.schema.columns[index] is not theirs:
            break
        begun = target.schema.index[ours.name] in target.schema.begun
        if begun and not cuts_begun(ours):
            break
        if not _sorted_alike(theirs, ours, one_order=source.text_order == target.text_order):
            break
        cut.append((theirs, ours))
    return cut


def _sorted_alike(one: Column, other: Column, *, one_order: bool) -> bool:
    if one.kind is Kind.TEXT and other.kind is Kind.TEXT:
        same = one.collation == other.collation
        return same and (one.collation in _SORTED_ALIKE or (one_order and bool(one.collation)))
    return one.kind is other.kind and one.kind in _ORDERED


def _spelled_alike(one: Column, other: Column) -> tuple[Column, Column]:
    """Text of two character sets is compared by its characters, not by how each spells them."""
    if one.capacity is None or other.capacity is None:
        return one, other
    if one.capacity.charset == other.capacity.charset:
        return one, other
    return (
        replace(one, capacity=replace(one.capacity, doubled=False)),
        replace(other, capacity=replace(other.capacity, doubled=False)),
    )


def common_form(one: Column, other: Column) -> Form | None:
    """The form in which two columns' servers can write the same values alike, None for none."""
    if one.capacity is None or other.capacity is None:
        return None
    kinds, types = {one.kind, other.kind}, {one.capacity.type, other.capacity.type}
    normal = next((normal for group, normal in _NORMALS if kinds <= group), None)
    if normal is None or types & _UNCLEAR or (normal is Normal.FLOATING and len(types) > 1):
        return None
    if print_alike(one.capacity.labels) or print_alike(other.capacity.labels):
        same = one.kind is other.kind and one.capacity.labels == other.capacity.labels
        return Form(Normal.NUMBER) if same else None
    if normal is Normal.DECIMAL:
        return _decimal(one, other)
    timed = normal in {Normal.CLOCK, Normal.MOMENT}
    scales = (one.capacity.scale or 0, other.capacity.scale or 0)
    return Form(normal, scale=max(scales) if timed else 0)


def _decimal(one: Column, other: Column) -> Form | None:
    scale = max(one.scale, other.scale)
    whole = max(
        column.precision - column.scale if column.kind is Kind.DECIMAL else _INTEGER_DIGITS
        for column in (one, other)
    )
    return Form(Normal.DECIMAL, whole + scale, scale) if whole + scale <= _MOST_DIGITS else None
