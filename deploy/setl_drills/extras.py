"""Whether the packages of the extra ``embedded`` are there, which drills and the demo need."""

from __future__ import annotations

import click

_NEEDED = ("kafka-python", "noida-db")


def require_embedded(what: str) -> None:
    """Refuse a command that needs the embedded servers where they are not installed.

    Args:
        what: the subject of the refusal, such as ``drills``.

    Raises:
        click.UsageError: a package is missing; it names the packages, and how to install them.
    """
    missing = [name for name in _NEEDED if not _is_installed(name)]
    if missing:
        raise click.UsageError(
            f"{what} need {', '.join(missing)}, which a plain installation leaves out;"
            " pip install 'setl[embedded]' brings it"
        )


def _is_installed(distribution: str) -> bool:
    from importlib import metadata  # noqa: PLC0415 - takes a moment that help need not wait

    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True
