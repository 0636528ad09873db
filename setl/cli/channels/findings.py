"""How `setl check` prints what it has found: short for people, as SQL for servers, as values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from setl.systems.finding import Finding

if TYPE_CHECKING:
    from rich.console import Console

_STYLES = {"error": "red", "warning": "yellow", "accepted": "dim", "ok": "green"}
_INDENT = " " * 9


def exit_status(findings: Sequence[Finding], *, strict: bool) -> int:
    """The exit status of a check, for scripts that go on only if all is right.

    0: nothing is to be fixed. 1: something is; with `strict`, a warning that is not accepted as
    well. 3: all that is wrong is that servers do not answer.
    """
    wrong = [f for f in findings if f.level == "error" or (strict and f.level == "warning")]
    if not wrong:
        return 0
    return 3 if all(finding.unseen for finding in wrong) else 1


def finding_row(finding: Finding) -> dict[str, Any]:
    """A finding under stable names, for programs."""
    return {
        "level": finding.level,
        "id": finding.id,
        "what": finding.what,
        "where": finding.where,
        "server": finding.server,
        "hint": list(finding.hint),
        **({"mapping": finding.mapping} if finding.mapping is not None else {}),
    }


def print_findings(out: Console, findings: Sequence[Finding], *, verbose: bool) -> None:
    """Print errors and warnings with their hints; `verbose`: all of it, statements too."""
    from rich.text import Text  # noqa: PLC0415

    for finding in findings:
        if finding.level in ("ok", "accepted") and not verbose:
            continue
        head = Text(f"{finding.level:<8}", _STYLES[finding.level])
        text = f"{finding.where}: {finding.what}"
        if finding.id:
            out.print(head, finding.id)
            out.print(f"{_INDENT}{text}")
        else:
            out.print(head, text)
        for line in _hints(finding, verbose=verbose):
            out.print(f"{_INDENT}{line}")


def _hints(finding: Finding, *, verbose: bool) -> Iterator[str]:
    if verbose:
        yield from (f"→ {line}" for line in finding.hint)
        yield from finding.mapping_lines
        return
    yield from (f"→ {line}" for line in finding.hint if not line.endswith(";"))
    number = len(finding.statements)
    if number:
        there = f" for {finding.server}" if finding.server else ""
        yield f"→ {_counted(number, 'statement')}{there}; `-o sql` prints {_them(number)}"
    if finding.level == "error" and finding.acceptable:
        yield f"→ Or live with it: `accept: [{finding.id}]` in the pipeline"


def summary(findings: Sequence[Finding]) -> str:
    """How many there are that need no fixing, by level; "" for none."""
    counts = [
        (sum(f.level == "warning" for f in findings), "{} to know"),
        (sum(f.level == "accepted" for f in findings), "{} accepted"),
        (sum(f.level == "ok" for f in findings), "{} right"),
    ]
    text = ", ".join(words.format(number) for number, words in counts if number)
    hidden = any(f.level in ("ok", "accepted") for f in findings)
    return text + (" (-v shows all)" if hidden else "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _them(number: int) -> str:
    return "it" if number == 1 else "them"


def sql_scripts(findings: Sequence[Finding], name: str) -> dict[str, str]:
    """For each server with something to fix, the statements that fix it, as a script to run.

    What is no statement stands as a comment before them. A statement that several findings ask
    for stands once.

    Args:
        findings: what was found.
        name: of the channel.
    """
    scripts: dict[str, list[str]] = {}
    given: set[tuple[str, str]] = set()
    for finding in findings:
        if finding.level not in ("error", "warning") or not finding.statements:
            continue
        new = [
            line
            for line in finding.hint
            if not line.endswith(";") or (finding.server, line) not in given
        ]
        if not any(line.endswith(";") for line in new):
            continue
        given.update((finding.server, line) for line in new)
        script = scripts.setdefault(
            finding.server,
            [f"-- For the server {finding.server}: what `setl check` of channel {name} found."],
        )
        script += ["", *_comment(f"{finding.where}: {finding.what} [{finding.id}]")]
        for line in new:
            script += [line] if line.endswith(";") else _comment(line)
    return {server: "\n".join(lines) + "\n" for server, lines in scripts.items()}


def not_in_scripts(findings: Sequence[Finding], server: str | None) -> list[str]:
    """What is to be fixed and has no statement, a line each: `sql_scripts` leave it out.

    Args:
        findings: what was found.
        server: of this one, and what belongs to no server; None for all.
    """
    return [
        f"not in the script: {finding.where}: {finding.what}"
        for finding in findings
        if finding.level == "error" and not finding.statements and server in (None, finding.server)
    ]


def _comment(text: str) -> list[str]:
    # A line break in a name would end the comment, and what follows it would be run.
    return [f"-- {line}" for line in text.splitlines()]
