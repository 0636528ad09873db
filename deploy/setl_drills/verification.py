"""Reads what both sites and the index hold in the end, and has it checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from setl.model.position import BinlogPosition
from setl_drills.binlog import Transaction, binlog_end, read_transactions
from setl_drills.checkers import (
    check_bank,
    check_documents,
    check_epochs,
    check_equal,
    check_set,
    count_echoes,
)
from setl_drills.drill import DrillResult
from setl_drills.tables import ACCOUNTS, BALANCE, SEARCHED, TABLES, index_name
from setl_drills.workload import SiteWriter
from setl_embedded import DatabaseServer, Elasticsearch, NoAnswerError, ask_json

_DRAIN_LIMIT = 90.0
_SHOWN = 5


class Verification:
    """The checks of one run."""

    def __init__(
        self,
        *,
        sites: Mapping[str, DatabaseServer],
        schema: str,
        channel: str,
        writers: Mapping[str, SiteWriter],
        begins: Mapping[str, BinlogPosition],
        stored: Mapping[str, list[Transaction]],
        elasticsearch: Elasticsearch | None,
    ) -> None:
        self._sites = sites
        self._schema = schema
        self._channel = channel
        self._writers = writers
        self._begins = begins
        self._stored = stored
        self._elasticsearch = elasticsearch

    def drain(self, last: Mapping[str, int], failure: Callable[[], str]) -> str:
        """Wait until the last entry of each site is everywhere and the sites agree.

        Args:
            last: id of the last entry, by site.
            failure: says why it will not happen, "" while it may.

        Returns:
            Why it did not happen, "" if it did.
        """
        deadline = time.monotonic() + _DRAIN_LIMIT
        while time.monotonic() < deadline:
            if self._arrived(last) and self.equal():
                return ""
            if failed := failure():
                return failed
            time.sleep(0.2)
        return f"not everything arrived within {_DRAIN_LIMIT:.0f} s after the last write"

    def equal(self) -> bool:
        """Whether both sites, and the index if there is one, hold the same now."""
        same = self._checksums("a") == self._checksums("b")
        return same and (self._elasticsearch is None or not self._document_problems())

    def _arrived(self, last: Mapping[str, int]) -> bool:
        return all(
            self._query(other, f"SELECT COUNT(*) FROM `{self._schema}`.entries WHERE id = {ident}")
            == ((1,),)
            for site, ident in last.items()
            for other in self._sites
            if other != site
        )

    def check(self, result: DrillResult) -> None:
        """All checks; what is wrong is added to the result."""
        for problem in check_equal(self._checksums("a"), self._checksums("b")):
            result.problems.append(problem)
        for source, target in (("a", "b"), ("b", "a")):
            self._check_rows(source, target, result)
        if self._elasticsearch is not None:
            result.problems += self._document_problems()
        for site in self._sites:
            self._audit(site, result)
        if result.lost:
            result.problems.append(f"{result.lost} acknowledged rows are lost")
        if result.unexpected:
            result.problems.append(f"{result.unexpected} rows are there that nobody wrote")
        if result.echoes:
            result.problems.append(f"{result.echoes} row changes came back to their site")

    def _check_rows(self, source: str, target: str, result: DrillResult) -> None:
        committed = self._writers[source].committed
        for table, acknowledged in (("entries", committed.entries), ("bulk", committed.bulk)):
            for site in (source, target):
                rows = self._query(
                    site, f"SELECT id FROM `{self._schema}`.{table} WHERE site = '{source}'"
                )
                verdict = check_set(acknowledged, committed.uncertain, {int(r[0]) for r in rows})
                result.lost += len(verdict.lost)
                result.unexpected += len(verdict.unexpected)
                for what, ids in (("lost", verdict.lost), ("unexpected", verdict.unexpected)):
                    if ids:
                        shown = ", ".join(str(i) for i in sorted(ids)[:_SHOWN])
                        result.problems.append(
                            f"{what} on site {site}: {len(ids)} rows of {table}, such as {shown}"
                        )
        for site in (source, target):
            rows = self._query(
                site, f"SELECT id, balance FROM `{self._schema}`.accounts WHERE site = '{source}'"
            )
            balances = {int(ident): int(balance) for ident, balance in rows}
            for problem in check_bank(balances, ACCOUNTS, BALANCE):
                result.problems.append(f"bank of {source} on site {site}: {problem}")

    def _audit(self, site: str, result: DrillResult) -> None:
        transactions = self._transactions(site)
        result.echoes += count_echoes(transactions, site)
        other = next(name for name in self._sites if name != site)
        key = f"{self._channel}/{other}{site}"
        for problem in check_epochs(transactions, key):
            result.problems.append(f"binlog of site {site}, {key}: {problem}")
        loads = sum(bool(t.marks) and bool(t.rows) for t in transactions)
        result.evidence.setdefault("audit", {})[site] = {
            "transactions": len(transactions),
            "loads": loads,
        }
        if not loads:
            result.problems.append(f"binlog of site {site}: no load found, so nothing is proved")

    def _transactions(self, site: str) -> list[Transaction]:
        server = self._sites[site]
        read = read_transactions(server, self._schema, self._begins[site], binlog_end(server))
        return [*self._stored.get(site, ()), *read]

    def _checksums(self, site: str) -> dict[str, object]:
        names = ", ".join(f"`{self._schema}`.{table}" for table in TABLES)
        rows = self._query(site, f"CHECKSUM TABLE {names}")
        return {str(name): checksum for name, checksum in rows}

    def _query(self, site: str, question: str) -> tuple[tuple[Any, ...], ...]:
        connected = self._sites[site].connect(read_timeout=60)
        with connected as connection, connection.cursor() as cursor:
            cursor.execute(question)
            return tuple(cursor.fetchall())

    def _document_problems(self) -> list[str]:
        problems: list[str] = []
        for table in SEARCHED:
            documents = self._documents(index_name(self._schema, table))
            if documents is None:
                problems.append(f"index of {table}: it does not answer")
                continue
            missing, extra, different = check_documents(self._rows(table), documents)
            for what, keys in (("missing", missing), ("extra", extra), ("different", different)):
                if keys:
                    shown = ", ".join(keys[:_SHOWN])
                    problems.append(f"index of {table}: {len(keys)} {what}, such as {shown}")
        return problems

    def _rows(self, table: str) -> dict[str, dict[str, Any]]:
        # Only what site A wrote or received by this channel's sibling reaches the index too.
        with self._sites["a"].connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"SELECT * FROM `{self._schema}`.{table}")
            names = [column[0] for column in cursor.description]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        return {str(row["id"]): row for row in rows}

    def _documents(self, index: str) -> dict[str, dict[str, Any]] | None:
        """All documents of an index, by id; None if they cannot be read."""
        assert self._elasticsearch is not None
        found: dict[str, dict[str, Any]] = {}
        after = -1
        try:
            self._post(f"{index}/_refresh", {})
            while True:
                answer = self._post(
                    f"{index}/_search",
                    {
                        "size": 5000,
                        "sort": [{"id": "asc"}],
                        "query": {"range": {"id": {"gt": after}}},
                    },
                )
                hits = answer["hits"]["hits"]
                if not hits:
                    return found
                found.update({hit["_id"]: hit["_source"] for hit in hits})
                after = max(int(hit["_source"]["id"]) for hit in hits)
        except (NoAnswerError, ValueError, KeyError):
            return None

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        assert self._elasticsearch is not None
        return ask_json(f"{self._elasticsearch.url}/{path}", body, timeout=30)
