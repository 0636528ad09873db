"""The findings of a check of servers, and the report that collects them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final, Literal

from setl.errors import SetlError, TransientError

Level = Literal["error", "warning", "accepted", "ok"]

OTHER: Final = "other"
"""The code of a finding whose system, which may be another package's, gives it none."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was checked.

    Attributes:
        level: "error" keeps the channel from working, "warning" may hurt one day, "accepted" is
            a risk that the channel file accepts, "ok".
        what: what was found, in one sentence.
        where: pipeline, end and table.
        hint: what fixes it. SQL statements end with a semicolon and can be run as they are, in
            this order; anything else is an instruction. Of what is "ok": the statements that
            setl will run itself.
        mapping: the mapping that an index will get or be given, as Elasticsearch writes it.
        mapping_lines: the same for people.
        unseen: whether a server did not answer, so that nothing is known of what it has.
        code: what kind of thing it is, a short name that stays the same from release to release;
            "" for what is "ok".
        location: the table or index, or "source" or "target"; "" for what is of the whole channel.
        server: host and port of the server that it was found on, where SQL statements belong.
        risk: whether an error may be accepted, since it is one only if something else happens; a
            warning always may.
    """

    level: Level
    what: str
    where: str
    hint: tuple[str, ...] = ()
    mapping: dict[str, Any] | None = None
    unseen: bool = False
    mapping_lines: tuple[str, ...] = ()
    code: str = ""
    location: str = ""
    server: str = ""
    risk: bool = False

    @property
    def id(self) -> str:
        """What `accept` in a channel file names it by: its kind, and where it is."""
        return finding_id(self.code, self.location)

    @property
    def acceptable(self) -> bool:
        """Whether `accept` may name it."""
        return self.level == "warning" or (self.level == "error" and self.risk)

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL statements of `hint`, without the semicolons."""
        return tuple(f[:-1] for f in self.hint if f.endswith(";"))


FOUND_LATER: Final = frozenset({
    "copied-in-utc", "replaced-table", "shadow-definition", "shared-target", "statement",
})  # fmt: skip
"""What `accept` may name though a check does not find it.

Only a running pipeline comes upon it, or who looks at the other channels of the cluster, too.
"""


def finding_id(code: str, location: str) -> str:
    """See `Finding.id`."""
    return f"{code}@{location}" if location else code


def accepting(accept: Sequence[str], id_: str) -> list[str]:
    """The entries of a pipeline's `accept` that name a finding, by its id."""
    return [pattern for pattern in accept if fnmatchcase(id_, pattern)]


class Report:
    """Collects the findings of one place; narrower positions collect into the same list."""

    def __init__(
        self,
        where: str,
        findings: list[Finding] | None = None,
        *,
        end: str = "",
        server: str = "",
        table: str = "",
    ) -> None:
        """Begin a report.

        Args:
            where: the position, for people.
            findings: collects them; None for a list of its own.
            end: "source" or "target", "" for neither.
            server: the server's host and port.
            table: the table or index, if it is a position as narrow as that.
        """
        self.where = where
        self._end, self._server, self._table = end, server, table
        self.findings: list[Finding] = [] if findings is None else findings

    def at(self, location: str) -> Report:
        """A narrower place, such as a table."""
        return Report(
            f"{self.where}, {location}",
            self.findings,
            end=self._end,
            server=self._server,
            table=self._table or location.removeprefix("index "),
        )

    def add(
        self,
        level: Level,
        what: str,
        *hint: str,
        code: str = OTHER,
        unseen: bool = False,
        risk: bool = False,
    ) -> None:
        """Add a finding; see `Finding` for a code and a risk."""
        self.findings.append(
            Finding(
                level,
                what,
                self.where,
                hint,
                unseen=unseen,
                code=code,
                location=self._table or self._end,
                server=self._server,
                risk=risk,
            )
        )

    def error(self, what: str, *hint: str, code: str = OTHER, risk: bool = False) -> None:
        """Add what keeps the channel from working."""
        self.add("error", what, *hint, code=code, risk=risk)

    def unseen(self, what: str, *hint: str, code: str = OTHER) -> None:
        """Add an error: a server does not answer here, and may answer the nodes."""
        self.add("error", what, *hint, code=code, unseen=True)

    def warning(self, what: str, *hint: str, code: str = OTHER) -> None:
        """Add what may hurt one day."""
        self.add("warning", what, *hint, code=code)

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
            hint=tuple(statements),
            server=self._server,
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
            location = [f"{k} {v}" for k, v in error.where.items() if k not in {"server", "table"}]
            what = error.message + (f" ({', '.join(location)})" if location else "")
            unseen = isinstance(error, TransientError)
            code = "no-answer" if unseen else "not-readable"
            hints = [error.hint] if error.hint else []
            self.add("error", what, *hints, code=code, unseen=unseen)
