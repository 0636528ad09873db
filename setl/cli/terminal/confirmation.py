"""Ask for confirmation before something that cannot be undone."""

from __future__ import annotations

import sys

import click

from setl.cli.access.cluster import AnswerNo

yes_option = click.option("-y", "--yes", is_flag=True, help="Do not ask.")


def confirm(question: str, *, yes: bool) -> None:
    """Ask, if there is somebody to ask.

    A command without a terminal (a script, a timer) is not asked: whoever wrote it down has
    decided. At a terminal ``--yes`` says so.

    Raises:
        AnswerNo: the answer is no; nothing was done.
    """
    if yes or not has_terminal():
        return
    # On standard error, so that the result alone is on standard output.
    if not click.confirm(question, err=True):
        raise AnswerNo("nothing was done")


def has_terminal() -> bool:
    """Whether somebody sits in front of this command."""
    return sys.stdin.isatty()
