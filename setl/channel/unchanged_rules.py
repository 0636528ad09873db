"""Rules about updates that change nothing, over raw parts of a channel file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from setl.channel.conflict_rules import policy_of
from setl.channel.mapping_rules import Raw, not_with, part
from setl.channel.problems import Path
from setl.channel.spark_sql import bare_column

_NOT_WITH = {
    "where": "a row may pass after an update that passed not before",
    "processor": "what a function makes of a change, only the function knows",
    "nested": "the documents show rows of other tables, too",
}


def wrong_unchanged(tables: Sequence[Raw], target: Raw) -> Iterator[tuple[Path, str]]:
    """What does not go together with `unchanged: skip`."""
    if target.get("type") == "dts":
        return  # a relay knows nothing of it, which `wrong_relay` says
    for i, table in enumerate(tables):
        if table.get("unchanged") != "skip":
            continue
        reasons = not_with(table, _NOT_WITH)
        texts = [str(text) for text in part(table.get("columns")).values()]
        if any(bare_column(text) is None for text in texts):
            reasons.append(
                "cannot be combined with expressions in `columns`: which columns they use is not"
                " looked at"
            )
        if table.get("read") == "source":
            reasons.append("cannot be combined with `read: source`: the change is not looked at")
        if policy_of(table) is not None:
            reasons.append(
                "cannot be combined with a `conflict` policy: every change counts for it"
            )
        if table.get("include") is None and not table.get("exclude"):
            reasons.append(
                "needs `include` or `exclude`: where all columns go, each update changes one"
            )
        if reasons:
            yield ("tables", i, "unchanged"), "; it ".join(reasons)
