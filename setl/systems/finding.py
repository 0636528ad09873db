"""The findings of a check of servers, and the report that collects them."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from setl.errors import SetlError, TransientError

Level = Literal["error", "warning", "ok"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    Attributes:
        level: "error" keeps the channel from working, "warning" may hurt one day, "ok".
        what: what was found, in one sentence.
        where: pipeline, end and table.
        fix: what fixes it. SQL statements end with a semicolon and can be run as they are, in
            this order; anything else is an instruction. Of what is "ok": the statements that
            setl will run itself.
        mapping: the mapping that an index will get or be given, as Elasticsearch writes it.
        mapping_lines: the same for people.
        unseen: whether a server did not answer, so that nothing is known of what it has.
    """

    level: Level
    what: str
    where: str
    fix: tuple[str, ...] = ()
    mapping: dict[str, Any] | None = None
    unseen: bool = False
    mapping_lines: tuple[str, ...] = ()

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL statements of `fix`, without the semicolons."""
        return tuple(f[:-1] for f in self.fix if f.endswith(";"))


class Report:
    """Collects the findings of one place; narrower places collect into the same list."""

    def __init__(self, where: str, findings: list[Finding] | None = None) -> None:
        self.where = where
        self.findings: list[Finding] = [] if findings is None else findings

    def at(self, place: str) -> Report:
        """A narrower place, such as a table."""
        return Report(f"{self.where}, {place}", self.findings)

    def add(self, level: Level, what: str, *fix: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(level, what, self.where, fix))

    def error(self, what: str, *fix: str) -> None:
        """Add what keeps the channel from working."""
        self.add("error", what, *fix)

    def unseen(self, what: str, *fix: str) -> None:
        """Add an error: a server does not answer here, and may answer the nodes."""
        self.findings.append(Finding("error", what, self.where, fix, unseen=True))

    def warning(self, what: str, *fix: str) -> None:
        """Add what may hurt one day."""
        self.add("warning", what, *fix)

    def ok(
        self,
        what: str,
        *,
        mapping: dict[str, Any] | None = None,
        lines: Iterable[str] = (),
        statements: Iterable[str] = (),
    ) -> None:
        """Add what is as it should be, or will be; see `Finding` for a mapping and its lines.

        `statements`, with semicolons, are what setl will run.
        """
        finding = Finding(
            "ok",
            what,
            self.where,
            fix=tuple(statements),
            mapping=mapping,
            mapping_lines=tuple(lines),
        )
        self.findings.append(finding)

    @contextmanager
    def failing(self) -> Generator[None]:
        """Turn an error inside the block into a finding; what follows it there is not checked."""
        try:
            yield
        except SetlError as error:
            place = [f"{k} {v}" for k, v in error.where.items() if k not in {"server", "table"}]
            what = error.message + (f" ({', '.join(place)})" if place else "")
            add = self.unseen if isinstance(error, TransientError) else self.error
            add(what, *([error.hint] if error.hint else []))
