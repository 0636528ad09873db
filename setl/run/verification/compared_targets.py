"""The targets of a pipeline with what goes into each, to be compared."""

from __future__ import annotations

from collections.abc import Sequence

from setl.bulk.source_reader import SourceReader
from setl.bulk.source_side import MappedTable
from setl.bulk.target_reader import TargetReader
from setl.channel.file import Pipeline
from setl.channel.routes.routing import Route, Router
from setl.errors import ConfigurationError
from setl.model.target_name import target_name
from setl.run.verification.compared_source import compared_tables
from setl.systems.registry import system_of

Sources = list[tuple[SourceReader, Route]]


def mapped_targets(
    pipeline: Pipeline, tables: Sequence[str] | None = None
) -> dict[tuple[str, ...], Sources]:
    """The targets of a pipeline with the existing source tables that go into each.

    A target is (schema, table), or ("", index); with the fixed text of the ids behind it if the
    channel file gives one, since tables whose ids differ share an index, but no documents.

    Raises:
        ConfigurationError: see `setl.operate.verify.verify_pipeline`.
        SetlError: of the kind that `setl.systems.mysql.connection.translate` gives.
    """
    opened = compared_tables(pipeline)
    router = Router(pipeline)
    targets: dict[tuple[str, ...], Sources] = {}
    wanted: set[tuple[str, ...]] = set()
    with opened as source:
        existing = source.names()
        _check_names(router, existing, tables)
        mapped = [(name, routes) for name in existing if (routes := router.route(*name))]
        readers = source.readers([name for name, _ in mapped])
        for (name, routes), plain in zip(mapped, readers, strict=True):
            for route in routes:
                if plain is None or route.nests(*name):
                    continue  # its rows are seen in the documents of the table they belong to
                documents = route.documents
                reader = plain if documents is None else source.documents(documents)
                target = (*route.target, *(route.id.texts if route.id else ()))
                targets.setdefault(target, []).append((reader, route))
                if tables is None or ".".join(name) in tables:
                    wanted.add(target)
    return {target: sources for target, sources in targets.items() if target in wanted}


def target_reader(
    pipeline: Pipeline, target: tuple[str, ...], sources: Sequence[MappedTable]
) -> TargetReader:
    """What reads a target for comparison with these sources.

    Raises:
        ConfigurationError: the target does not exist or lacks columns, or the sources do not
            agree in what identifies a row.
        SetlError: the target cannot be read.
    """
    keys = {tuple(name.lower() for name in source.key_names) for source in sources}
    if len(keys) > 1:
        raise ConfigurationError(
            "the tables that go into one target identify its rows by different columns: "
            + "; ".join(sorted(", ".join(key) or "all, without a key" for key in keys)),
            hint="Give their mappings the same `key`",
            table=target_name(target[:2]),
        )
    names = common_columns(sources)
    return system_of(pipeline.target).reader((target[0], target[1]), sources, names)


def common_columns(sources: Sequence[MappedTable]) -> tuple[str, ...]:
    """The target's columns that every one of its sources fills, in the order of the first."""
    filled = [{column.name.lower() for column in s.target_columns} for s in sources]
    shared = set[str].intersection(*filled)
    return tuple(c.name for c in sources[0].target_columns if c.name.lower() in shared)


def _check_names(
    router: Router, existing: Sequence[tuple[str, str]], tables: Sequence[str] | None
) -> None:
    exact = {e.pattern.exact for e in router.entries if e.pattern.exact is not None}
    missing = sorted(exact - set(existing))
    if missing and tables is None:
        raise ConfigurationError(
            "the source has no table " + ", ".join(".".join(name) for name in missing),
            hint="Fix the mapping, or let the account see the table",
        )
    mapped = {f"{s}.{t}" for s, t in existing if router.route(s, t)}
    unknown = [name for name in tables or () if name not in mapped]
    if unknown:
        raise ConfigurationError(
            f"the pipeline does not map {', '.join(unknown)}, or the source has no such table",
            hint="Name source tables as schema.table",
        )
