"""Rules about tables whose rows are read at the source, over raw parts of a channel file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setl.channel.conflict_rules import policy_of
from setl.channel.mapping_rules import Raw, not_with
from setl.channel.problems import Path

_NOT_WITH = {
    "processor": "it is given changes, and a row that is read is none",
    "key": "rows are looked up by the table's own key, which has an index",
    "routing": "the document of a row that was routed in another way would not be found",
    "nested": "documents with nested rows are looked up at the source anyway",
}


def wrong_rereads(tables: Sequence[Raw], source: Raw, target: Raw) -> Iterator[tuple[Path, str]]:
    """What does not go together with `read: source`."""
    if target.get("type") == "dts":
        return  # a relay knows nothing of it, which `wrong_relay` says
    for i, table in enumerate(tables):
        if table.get("read") != "source":
            continue
        reasons: list[str] = []
        if source.get("type") == "dts" and not source.get("database"):
            reasons.append("needs `database:` in the source, since rows are looked up there")
        reasons += not_with(table, _NOT_WITH)
        if policy_of(table) is not None:
            reason = "what each site wrote stands in the changes alone"
            reasons.append(f"cannot be combined with a `conflict` policy: {reason}")
        if reasons:
            yield ("tables", i, "read"), "; it ".join(reasons)
