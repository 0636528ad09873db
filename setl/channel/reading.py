"""Reads a channel file into a checked `ChannelFile`, and reports all mistakes at once (I18).

Two steps, since what is stored keeps its references: `read_channel_definition` gives the
content as written, `resolve_and_parse` puts the environment's values in and checks the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from pydantic import ValidationError

from setl.channel.error_texts import problems_of
from setl.channel.file import ChannelFile
from setl.channel.text.document import (
    ChannelDefinition,
    lines_of,
    origin_of,
    read_channel_definition,
)
from setl.channel.text.problems import ChannelFileError, Problem
from setl.channel.text.references import literal_secrets, resolve_references, substitute_allowed

__all__ = [
    "ChannelDefinition",
    "ChannelFileError",
    "Problem",
    "definition_warnings",
    "parse_channel",
    "read_channel_definition",
    "read_channel_file",
    "resolve_and_parse",
    "resolve_references",
]


def read_channel_file(
    source: FilePath | str, environment: Mapping[str, str] | None = None
) -> ChannelFile:
    """Read and check a channel file.

    Args:
        source: the path of a file, or as a str the YAML text itself.
        environment: where references get their values from. None leaves them as they are,
            which is right for a look at the file only; numbers cannot be references then.

    Raises:
        ConfigurationError: the file cannot be read.
        ChannelFileError: anything is wrong in it; lists everything.
    """
    definition = read_channel_definition(source)
    if environment is None:
        return parse_channel(definition)
    return resolve_and_parse(definition, environment)


def parse_channel(definition: Mapping[str, Any]) -> ChannelFile:
    """Check a definition as it is; references stay text.

    Raises:
        ChannelFileError: anything is wrong; lists everything.
    """
    return _checked(definition, definition, [])


def resolve_and_parse(definition: Mapping[str, Any], environment: Mapping[str, str]) -> ChannelFile:
    """Put the environment's values in place of references and check the result.

    The definition itself stays as it is, for `Arbiter.put_channel`.

    Raises:
        ChannelFileError: a variable is missing or anything else is wrong; lists everything.
    """
    resolved, problems = substitute_allowed(definition, environment)
    return _checked(resolved, definition, problems)


def definition_warnings(definition: Mapping[str, Any]) -> tuple[Problem, ...]:
    """What is allowed but unwise: literal passwords, which end up where the file is stored."""
    return tuple(literal_secrets(definition))


def _checked(
    resolved: Mapping[str, Any], written_as: Mapping[str, Any], problems: list[Problem]
) -> ChannelFile:
    lines = lines_of(written_as)
    channel: ChannelFile | None = None
    if isinstance(written_as, ChannelDefinition):
        problems = [*written_as.problems, *problems]
    try:
        channel = ChannelFile.model_validate(dict(resolved), context={"file": True})
    except ValidationError as error:
        # Where a variable is missing, what is left of the reference is no news.
        known = {p.path for p in problems}
        found = problems_of(error, written_as, lines)
        problems = [*problems, *(p for p in found if p.path not in known)]
    if channel is None or problems:
        # Python's sort keeps the order of problems in one line.
        ordered = sorted(problems, key=lambda p: p.line or 0)
        raise ChannelFileError(ordered, origin_of(written_as))
    return channel
