"""The paths of all znodes.

Under a root::

    /nodes/{nid}
    /channels/{channel}
    /channels/{channel}/{pipeline}/mainstem
    /channels/{channel}/{pipeline}/leaderships
    /channels/{channel}/{pipeline}/position
    /channels/{channel}/{pipeline}/cutover
    /channels/{channel}/{pipeline}/verification
    /channels/{channel}/{pipeline}/signals/
    /channels/{channel}/{pipeline}/loads/
    /channels/{channel}/{pipeline}/history/
    /actions/
    /acting/{session}
    /alarms/sender
    /alarms/state
    /alarms/silences
    /epoch
    /probe-{session}
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from arbiter.errors import Invalid
from arbiter.values import PipelineId

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def is_name(name: str) -> bool:
    """Whether a node, a channel or a pipeline can have this name."""
    # ZooKeeper itself refuses the components "." and "..".
    return bool(_NAME.fullmatch(name)) and name not in (".", "..")


def checked_name(name: str, what: str) -> str:
    """`name` itself, if it can be one component of a path.

    Channel, pipeline and node names come from files and command lines; a slash in one of them
    would reach into another part of the tree.

    Raises:
        Invalid: it holds other characters than letters, digits and ``_.-``, or is too long.
    """
    if not is_name(name):
        raise Invalid(
            f"not a {what} name: {name!r}; letters, digits and the characters _ . - are allowed,"
            " 128 of them at most"
        )
    return name


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths under one root.

    Attributes:
        root: begins with a slash and does not end with one; "" for the tree's own root.
    """

    root: str

    @classmethod
    def under(cls, root: str) -> Paths:
        """Paths under `root`, such as ``/setl``; raises Invalid if it cannot be one."""
        parts = root.strip("/").split("/") if root.strip("/") else []
        if not root.startswith("/") or parts[:1] == ["zookeeper"]:
            raise Invalid(
                f"not a root path: {root!r}; it begins with a slash, and /zookeeper is taken"
            )
        return cls("".join(f"/{checked_name(part, 'path')}" for part in parts))

    @property
    def nodes(self) -> str:
        """Holds the live nodes."""
        return f"{self.root}/nodes"

    def node(self, nid: str) -> str:
        """A live node, ephemeral."""
        return f"{self.nodes}/{checked_name(nid, 'node')}"

    @property
    def channels(self) -> str:
        """Holds the channels."""
        return f"{self.root}/channels"

    def channel(self, name: str) -> str:
        """A channel: state and definition."""
        return f"{self.channels}/{checked_name(name, 'channel')}"

    def pipeline(self, ident: PipelineId) -> str:
        """Holds what belongs to one pipeline."""
        return f"{self.channel(ident.channel)}/{checked_name(ident.pipeline, 'pipeline')}"

    def leader_lock(self, ident: PipelineId) -> str:
        """Who is active, ephemeral."""
        return f"{self.pipeline(ident)}/mainstem"

    def leaderships(self, ident: PipelineId) -> str:
        """How many leaderships the pipeline has had; missing means that nobody counted yet."""
        return f"{self.pipeline(ident)}/leaderships"

    def position(self, ident: PipelineId) -> str:
        """The checkpoint of a pipeline whose target cannot keep it."""
        return f"{self.pipeline(ident)}/position"

    def cutover(self, ident: PipelineId) -> str:
        """How far a cut-over of the pipeline is; missing means that there is none."""
        return f"{self.pipeline(ident)}/cutover"

    def verification(self, ident: PipelineId) -> str:
        """How far standing verification of the pipeline is; missing means that none began."""
        return f"{self.pipeline(ident)}/verification"

    def signals(self, ident: PipelineId) -> str:
        """Holds the operator's requests, in order."""
        return f"{self.pipeline(ident)}/signals"

    def loads(self, ident: PipelineId) -> str:
        """Holds the requests to load tables, in order."""
        return f"{self.pipeline(ident)}/loads"

    @property
    def actions(self) -> str:
        """Holds what operators did, in order."""
        return f"{self.root}/actions"

    @property
    def acting(self) -> str:
        """Holds a znode for each session that has kept an action, ephemeral."""
        return f"{self.root}/acting"

    def acting_in(self, session: int) -> str:
        """The znode of one such session."""
        return f"{self.acting}/{session:x}"

    @property
    def alarm_sender(self) -> str:
        """Who sends alarms, ephemeral."""
        return f"{self.root}/alarms/sender"

    @property
    def alarm_state(self) -> str:
        """Alarms that are raised, and messages about them that are on their way."""
        return f"{self.root}/alarms/state"

    @property
    def alarm_silences(self) -> str:
        """Alarms of which nothing is to be told for a while."""
        return f"{self.root}/alarms/silences"

    @property
    def epoch(self) -> str:
        """What is added to creation zxids; missing means 0."""
        return f"{self.root}/epoch"

    def probe(self, session: int) -> str:
        """Created by a session and removed at once, to see its creation zxid."""
        return f"{self.root}/probe-{session:x}"

    def history(self, ident: PipelineId) -> str:
        """Holds past leaderships, in order."""
        return f"{self.pipeline(ident)}/history"


def ancestors(path: str) -> list[str]:
    """The paths above `path`, outermost first, the tree's own root left out."""
    parts = path.split("/")[1:-1]
    return ["/" + "/".join(parts[: n + 1]) for n in range(len(parts))]
