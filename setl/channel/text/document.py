"""Reads the YAML of channel files, and keeps the line of every value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, cast

import yaml

from setl.channel.text.problems import ChannelFileError, Path, Problem, written
from setl.channel.text.scalars import scalar_value
from setl.errors import ConfigurationError

# A few kilobytes are usual. The limit on values keeps a file whose anchors refer to each
# other from growing without bound when it is unfolded.
MAX_BYTES = 1 << 20
MAX_VALUES = 100_000
MAX_DEPTH = 50

_FILE = "the channel file"
_CHANNEL = "must be a mapping that begins with `channel:` and `pipelines:`"


class ChannelDefinition(dict[str, Any]):
    """A channel file's content as plain values, references to secrets unresolved.

    It is a dict, so that it can be stored as JSON; a dict made from that JSON is a definition
    too, but without lines.

    Attributes:
        origin: the name of the file, for messages.
        lines: path → line, from 1, of each value.
        problems: mistakes in the YAML that still let the rest be read, such as a key that
            stands twice; `setl.channel.reading` reports them together with all others.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        *,
        origin: str = _FILE,
        lines: Mapping[Path, int] | None = None,
        problems: tuple[Problem, ...] = (),
    ) -> None:
        super().__init__(content)
        self.origin = origin
        self.lines: Mapping[Path, int] = lines or {}
        self.problems = problems


def read_channel_definition(source: FilePath | str, *, what: str = _CHANNEL) -> ChannelDefinition:
    """Read a channel file; nothing but its YAML is checked.

    Args:
        source: a path of a file, or as a str the YAML text itself.
        what: what is said of a file that holds no mapping.

    Raises:
        ConfigurationError: the file cannot be read.
        ChannelFileError: it is not YAML, or not a mapping.
    """
    origin = str(source) if isinstance(source, FilePath) else _FILE
    text = _read(source) if isinstance(source, FilePath) else source
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise _whole(origin, f"is larger than {MAX_BYTES >> 20} MiB")
    try:
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            if not isinstance(node, yaml.MappingNode):
                raise _whole(origin, what if node is not None else "is empty")
            reader = _Reader(loader)
            content = reader.value(node, ())
        finally:
            loader.dispose()  # pyright: ignore[reportUnknownMemberType]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else None
        reason = ", ".join(t for t in (error.context, error.problem) if t)
        raise _whole(origin, f"is not YAML: {reason}", line) from error
    except yaml.YAMLError as error:
        reason = str(error).splitlines()[0]
        raise _whole(origin, f"is not YAML: {reason}") from error
    except RecursionError as error:  # of the parser, long before `MAX_DEPTH` is looked at
        raise _whole(origin, f"has values that are nested more than {MAX_DEPTH} deep") from error
    return ChannelDefinition(
        content, origin=origin, lines=reader.lines, problems=tuple(reader.problems)
    )


def lines_of(definition: Mapping[str, Any]) -> Mapping[Path, int]:
    """Path → line for a definition that was read from a file; empty for any other."""
    return definition.lines if isinstance(definition, ChannelDefinition) else {}


def origin_of(definition: Mapping[str, Any]) -> str:
    """What to call a definition in messages: its file's name if it has one."""
    return definition.origin if isinstance(definition, ChannelDefinition) else _FILE


def _read(path: FilePath) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"cannot read {path}: {error.strerror or error}", hint="Check its name and its rights"
        ) from error
    except UnicodeDecodeError as error:
        raise _whole(str(path), "is not UTF-8 text") from error


def _whole(origin: str, message: str, line: int | None = None) -> ChannelFileError:
    return ChannelFileError([Problem("", f"the file {message}", line)], origin)


@dataclass(slots=True)
class _Reader:
    """Turns YAML nodes into values and remembers where each came from."""

    loader: yaml.SafeLoader
    lines: dict[Path, int] = field(default_factory=dict[Path, int])
    problems: list[Problem] = field(default_factory=list[Problem])
    _open: set[int] = field(default_factory=set[int])  # nodes that are being unfolded
    _values: int = 0

    def value(self, node: yaml.Node, path: Path) -> Any:
        self.lines[path] = line = node.start_mark.line + 1
        self._values += 1
        if self._values > MAX_VALUES or id(node) in self._open:
            reason = "an alias that holds itself" if id(node) in self._open else "too many values"
            raise yaml.MarkedYAMLError(None, None, reason, node.start_mark)
        if len(path) > MAX_DEPTH:
            reason = f"values that are nested more than {MAX_DEPTH} deep"
            raise yaml.MarkedYAMLError(None, None, reason, node.start_mark)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.MappingNode):
                return dict(self._pairs(node, path))
            if isinstance(node, yaml.SequenceNode):
                items = cast("list[yaml.Node]", node.value)
                return [self.value(item, (*path, i)) for i, item in enumerate(items)]
            return scalar_value(cast("yaml.ScalarNode", node))
        except ValueError as error:
            self.problems.append(Problem(written(path), str(error), line))
            return None
        finally:
            self._open.discard(id(node))

    def _pairs(self, node: yaml.MappingNode, path: Path) -> Iterator[tuple[str, Any]]:
        self._report_repeated(node, path)
        self.loader.flatten_mapping(node)
        for key_node, value_node in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            key = self._key(key_node)
            yield key, self.value(value_node, (*path, key))

    def _report_repeated(self, node: yaml.MappingNode, path: Path) -> None:
        """Before merging (``<<``), since overriding what was merged is no repetition."""
        first: dict[str, int] = {}
        for key_node, _ in cast("list[tuple[yaml.Node, yaml.Node]]", node.value):
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key, line = self._key(key_node), key_node.start_mark.line + 1
            if key in first:
                location = written((*path, key))
                self.problems.append(
                    Problem(location, f"stands twice, first in line {first[key]}", line)
                )
            first.setdefault(key, line)

    def _key(self, node: yaml.Node) -> str:
        """A key as it is written, so that ``1:`` and ``yes:`` are names as well."""
        if isinstance(node, yaml.ScalarNode):
            return str(node.value)
        raise yaml.MarkedYAMLError(None, None, "a key must be a word", node.start_mark)
