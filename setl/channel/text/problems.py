"""The problems of a channel file as values, and the error that lists them all."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from setl.counting import count
from setl.errors import ConfigurationError

Path = tuple[str | int, ...]
"""A position in a channel file: keys and list indexes from the top."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong or doubtful in a channel file.

    Attributes:
        path: where, as people write it: ``pipelines[0].tables[2].where``; "" is the whole file.
        message: what is wrong, the sentence that goes on after the path.
        line: line of the file, from 1; None if it is not known.
        level: "error" keeps the channel from being used, "warning" does not.
    """

    path: str
    message: str
    line: int | None = None
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        location = f"{self.path}: " if self.path else ""
        return f"{location}{self.message}" + (f" (line {self.line})" if self.line else "")


class ChannelFileError(ConfigurationError):
    """A channel file is wrong; its message has one line for each problem.

    Attributes:
        problems: all that was found, in the order of the file.
        origin: the file's name, or what else it was read from.
    """

    def __init__(self, problems: Iterable[Problem], origin: str = "the channel file") -> None:
        self.problems = tuple(problems)
        self.origin = origin
        head = f"{origin} has {count(len(self.problems), 'mistake')}:"
        super().__init__("\n".join([head, *(f"  {p}" for p in self.problems)]))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problems, self.origin), {"where": self.where}


def written(path: Path) -> str:
    """A path as people write it: ``pipelines[0].tables[2].where``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
