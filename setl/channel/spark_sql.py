"""Whether a channel has Spark SQL, as far as its stored file tells without being read in full."""

from __future__ import annotations

from setl.channel.mapping_rules import Raw, items, part
from setl.channel.routing import bare_column


def has_spark_sql(definition: Raw) -> bool:
    """Whether a table of any pipeline has expressions or a `where`.

    Args:
        definition: a channel file as it is stored, which may not be right in other places.
    """
    pipelines = map(part, items(definition.get("pipelines")))
    tables = (part(table) for pipeline in pipelines for table in items(pipeline.get("tables")))
    return any(map(_in_table, tables))


def _in_table(table: Raw) -> bool:
    texts = [text for text in part(table.get("columns")).values() if isinstance(text, str)]
    return bool(table.get("where")) or any(bare_column(text) is None for text in texts)
