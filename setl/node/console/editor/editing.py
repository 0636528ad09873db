"""The channel editor: what is wrong in a text, what applying it would change, and applying it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from arbiter.requests import Refused
from arbiter.values import ChannelState
from setl.channel.file import ChannelFile
from setl.channel.partitions import read_expanded
from setl.channel.reading import ChannelDefinition, definition_warnings, read_channel_definition
from setl.channel.text.problems import ChannelFileError
from setl.channel.text.references import refuse_hidden
from setl.errors import ConfigurationError, SetlError
from setl.node.console.actions.cli_subprocess import CliSubprocess
from setl.node.console.actions.context import ActionContext
from setl.operate import applying
from setl.operate.plan import Plan
from setl.operate.planning import make_plan
from setl.operate.ring_check import other_channels, ring_findings
from setl.operate.starting import readiness_of_file, refusal

CHECK_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class Fault:
    """Something about a text.

    Attributes:
        level: ``error`` or ``warning``.
        line: from 1, 0 if it has none.
        path: the position in the file.
        text: what is wrong.
    """

    level: str
    line: int
    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Read:
    """A text that was read.

    Attributes:
        faults: what is wrong, in the order of lines.
        definition: what it says as it is written, None if it is wrong.
        channel: the same with the node's values, None if it is wrong.
    """

    faults: Sequence[Fault]
    definition: ChannelDefinition | None = None
    channel: ChannelFile | None = None


def read(text: str, environment: Mapping[str, str]) -> Read:
    """Read a text as a channel file, and say everything that is wrong in it.

    Args:
        text: YAML.
        environment: where references get their values from; those that are not set here are
            mistakes, since this node could not run it.
    """
    try:
        definition = read_channel_definition(text)
        warnings = [
            Fault("warning", problem.line or 0, problem.path, problem.message)
            for problem in definition_warnings(definition)
        ]
        refuse_hidden(definition)
        expanded, channel = read_expanded(definition, environment)
    except ChannelFileError as error:
        return Read([Fault(p.level, p.line or 0, p.path, p.message) for p in error.problems])
    except ConfigurationError as error:
        return Read([Fault("error", 0, "", str(error))])
    return Read(warnings, expanded, channel)


def plan(context: ActionContext, found: Read) -> Plan:
    """What applying would change; asks the servers, but for expressions, which need Spark.

    Raises:
        Refused: the text is wrong.
    """
    definition, channel = _right(found)
    return make_plan(context.arbiter, definition, channel, context.environment)


def apply(context: ActionContext, found: Read, base: str) -> str:
    """Store the channel, as `setl apply` does.

    Args:
        context: of whoever asks.
        found: the text.
        base: revision of the file that its page showed at first.

    Raises:
        Refused: the text is wrong, somebody has stored another file meanwhile, changes would go
            round between channels, or the channel is not stopped and something must be fixed at
            its servers first.
    """
    definition, channel = _right(found)
    name = channel.channel
    hint = (
        f"Open the file of {name} in another tab, and put your changes into it. Actions shows who"
        " has stored it"
    )
    seen = applying.stored_channel(context.arbiter, name)
    applying.refuse_another(name, seen, base, hint)
    others = other_channels(context.arbiter, name)
    for finding in ring_findings(definition, others):
        if finding.level == "error":
            raise Refused(f"{finding.what}. {finding.hint[0]}, or `setl apply --allow-ring`")
    goes_on = seen is not None and seen.state is not ChannelState.STOP
    unseen = _unseen_servers(context, channel) if goes_on else ()
    stored = applying.store(context.arbiter, name, definition, seen=seen, looked=goes_on, hint=hint)
    return "\n".join([applying.stored_sentence(stored, seen), *unseen])


def _unseen_servers(context: ActionContext, channel: ChannelFile) -> Sequence[str]:
    """What could not be looked at before a channel goes on by a new file; refuses what cannot."""
    found = readiness_of_file(channel, context.arbiter)
    if found.faults:
        sql = "“Check at the servers”"
        raise Refused(refusal(channel.channel, found.faults, "stored", sql))
    return found.unseen


def check(text: str, cli_subprocess: CliSubprocess) -> Sequence[Mapping[str, Any]]:
    """What `setl check` finds at the real servers, expressions included; takes seconds.

    Args:
        text: the file.
        cli_subprocess: runs it in a process of its own, since it may start Spark.

    Raises:
        SetlError: it did not answer in time, or ended without an answer.
    """
    with tempfile.TemporaryDirectory(prefix="setl-console-") as folder:
        file = Path(folder) / "channel.yaml"
        file.write_text(text, encoding="utf-8")
        code, out, err = cli_subprocess.output(["check", str(file), "-o", "json"], CHECK_SECONDS)
    try:
        value: object = json.loads(out)
    except ValueError:
        last = err.strip()[-1000:] or f"exit status {code}"
        raise SetlError(f"the check gave no answer: {last}") from None
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", item) for item in items if isinstance(item, dict)]


def _right(found: Read) -> tuple[ChannelDefinition, ChannelFile]:
    if found.definition is None or found.channel is None:
        raise Refused("the file has mistakes; nothing was done")
    return found.definition, found.channel
