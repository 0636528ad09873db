"""Checks what a cluster may lose when one of its machines fails, without anybody noticing."""

from __future__ import annotations

import json
from typing import Any, Final, cast

from setl.systems.finding import Report

_SURE: Final = {"index": {"translog": {"durability": "request"}}}


def check_durability(name: str, settings: dict[str, Any], report: Report) -> None:
    """Report an index that loses documents of which the checkpoint says that they are written.

    The checkpoint is never in the index, so they are not written again.

    Args:
        name: of the index.
        settings: what stands below ``index`` in its settings.
        report: where to put it.
    """
    translog = settings.get("translog")
    found = cast("dict[str, Any]", translog) if isinstance(translog, dict) else {}
    durability = found.get("durability", settings.get("translog.durability"))
    if str(durability).lower() == "async":
        report.warning(
            "index.translog.durability is async: if a server of the cluster fails, the last"
            " documents that it has taken may be lost, and are not written again; compare with"
            " `setl verify`",
            f"PUT /{name}/_settings {json.dumps(_SURE)}",
            code="documents-not-flushed",
        )
