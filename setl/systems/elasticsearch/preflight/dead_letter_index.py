"""Whether an Elasticsearch target can keep dead letters."""

from __future__ import annotations

from typing import Any

from setl.channel.file import ElasticsearchTarget
from setl.systems.elasticsearch.client import make_client, translating
from setl.systems.elasticsearch.endpoint import elastic_endpoint
from setl.systems.elasticsearch.system_indexes import DEAD_LETTERS
from setl.systems.finding import Report

_BLOCKS = ("write", "read_only", "read_only_allow_delete")


def check_dead_letter_index(target: ElasticsearchTarget, report: Report) -> None:
    """Report whether the index of dead letters is there and can be written to.

    Raises:
        SetlError: the cluster does not answer, or does not let the account look.
    """
    endpoint = elastic_endpoint(target)
    table_report = report.at(f"index {DEAD_LETTERS}")
    with translating(endpoint), make_client(endpoint) as client:
        if not client.indices.exists(index=DEAD_LETTERS):
            table_report.ok("setl will create it for the faulty rows of `faulty_rows: dead_letter`")
            return
        found: dict[str, Any] = client.indices.get_settings(index=DEAD_LETTERS).body
    for name, described in found.items():
        blocks: dict[str, Any] = described["settings"]["index"].get("blocks", {})
        held = [block for block in _BLOCKS if str(blocks.get(block)).lower() == "true"]
        if held:
            table_report.error(
                f"it is blocked for writing ({', '.join(held)}), and faulty rows go there",
                *(f'PUT /{name}/_settings {{"index.blocks.{block}": null}}' for block in held),
                code="index-blocked",
            )
