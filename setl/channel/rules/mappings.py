"""Rules between the tables and the endpoints of a pipeline, over raw parts of a channel file.

Values may be of any type here: what has the wrong type is reported elsewhere and skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setl.channel.fields.endpoints import takes_documents, takes_rows
from setl.channel.names.document_ids import IdTemplate, IdTemplateError, parse_id
from setl.channel.names.patterns import (
    PatternError,
    TablePattern,
    parse_index_target,
    parse_table_target,
)
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, is_known, pattern_of
from setl.model.document import DocumentForm

_OF_DOCUMENTS = ("id", "routing", "zero_dates", "geometry")
_SEVERAL = (
    "brings several tables into one index, where rows with the same key would be one document;"
    " write a * for every wildcard, or give an `id`: with {schema} or {table} in it, or without if"
    " keys are unique over all of them"
)
_SHARED = (
    "is an index that tables[{}] writes to as well, and rows of both may have the same id; give"
    " both an `id` that begins or ends differently, such as {{table}}-{{id}}"
)


def wrong_targets(tables: Sequence[Raw], source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """What is wrong with each `to`, given the endpoints of the pipeline."""
    to_itself = _same_server(source, target)
    for i, table in enumerate(tables):
        pattern = pattern_of(table)
        to = table.get("to")
        if pattern is None or (to is not None and not is_known(to)):
            continue
        try:
            same = _retains_name(pattern, to, target)
        except PatternError as error:
            yield ("tables", i, "to"), str(error)
            continue
        if to_itself and same:
            reason = "must name another table, since source and target are the same server"
            yield ("tables", i, "to"), reason


def repeated_sources(tables: Sequence[Raw]) -> Iterator[tuple[Path, str]]:
    """Entries for the same tables must differ in their target."""
    targets: dict[tuple[TablePattern, str | None], int] = {}
    for i, table in enumerate(tables):
        pattern, to = pattern_of(table), table.get("to")
        if pattern is not None and isinstance(to, str | None):
            first = targets.setdefault((pattern, to), i)
            if first != i:
                yield ("tables", i), f"has the same `from` and `to` as tables[{first}]"


def wrong_documents(tables: Sequence[Raw], target: Raw) -> Iterator[tuple[Path, str]]:
    """What is wrong with documents: keys that need an index, and tables that share one."""
    if takes_rows(target):
        for i, table in enumerate(tables):
            for key in (key for key in _OF_DOCUMENTS if table.get(key) is not None):
                yield (
                    ("tables", i, key),
                    "only means something for a target of documents, such as Elasticsearch",
                )
    if not takes_documents(target):
        return
    owners: dict[str, tuple[int, IdTemplate | None]] = {}
    for i, table in enumerate(tables):
        pattern, to, written = pattern_of(table), table.get("to"), table.get("id")
        if pattern is None or (to is not None and not is_known(to)):
            continue
        template = _template(written)
        if template is None and written is None and _several(pattern, to):
            yield ("tables", i, "to"), _SEVERAL
        exact = pattern.exact
        if exact is None:
            # Which tables there are is not known here; the router tells when it meets them.
            continue
        index = str(to) if to is not None else exact[1].lower()
        template = template.of_table(*exact) if template is not None else None
        at, other = owners.setdefault(index, (i, template))
        if at != i and pattern != pattern_of(tables[at]) and not _apart(template, other):
            yield ("tables", i, "to"), _SHARED.format(at)


def _several(pattern: TablePattern, to: str | None) -> bool:
    """Whether tables of one pattern may come together in one index."""
    try:
        target = None if to is None else parse_index_target(to, pattern)
    except PatternError:
        return False
    carried = pattern.table.wildcards if target is None else target.wildcards
    return carried < pattern.wildcards


def _template(written: object) -> IdTemplate | None:
    try:
        return parse_id(str(written)) if is_known(written) else None
    except IdTemplateError:
        return None


def _apart(one: IdTemplate | None, other: IdTemplate | None) -> bool:
    """Whether ids made by two templates surely differ."""
    if one is None or other is None:
        return False
    return DocumentForm(one.texts, ()).distinguishes(DocumentForm(other.texts, ()))


def _retains_name(pattern: TablePattern, to: str | None, target: Raw) -> bool:
    """Whether rows go to a table of the same name; PatternError if `to` is malformed."""
    of_tables = takes_rows(target)
    if to is None:
        return of_tables
    if takes_documents(target):
        parse_index_target(to, pattern)
    elif of_tables:
        parsed = parse_table_target(to, pattern)
        exact = pattern.exact
        return exact is not None and parsed.wildcards == 0 and parsed.fill(exact[0], ()) == exact
    return False


def _same_server(source: Raw, target: Raw) -> bool:
    ends = [(e.get("type"), e.get("host"), str(e.get("port", 3306))) for e in (source, target)]
    return ends[0] == ends[1] and ends[0][0] == "mysql"
