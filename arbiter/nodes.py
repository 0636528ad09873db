"""The nodes that live."""

from __future__ import annotations

from collections.abc import Sequence

from arbiter.errors import Conflict
from arbiter.payloads import node_payload, read_node
from arbiter.tree import ATTEMPTS, Tree
from arbiter.values import NodeInfo
from arbiter.znodes import Exists


class Nodes:
    """An ephemeral znode for each node."""

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._znodes = tree.znodes
        self._paths = tree.paths

    def announce(self, node: NodeInfo) -> None:
        """Make this node known for as long as the session lives. Idempotent.

        Only the owner tells a node's own znode from another's of the same name. One that an
        earlier process left behind looks just like a living rival, and stays until that
        session expires: the caller tries again for as long as a session can last. The znode
        of an earlier session of this very process is not in the way, since ZooKeeper removes
        a session's znodes before it carries out anything that comes after its end.

        Raises:
            Conflict: another live session uses the same nid.
        """
        path, data = self._paths.node(node.nid), node_payload(node)
        session = self._tree.session()
        for _ in range(ATTEMPTS):
            try:
                self._tree.create(path, data, ephemeral=True, session=session)
            except Exists:
                found = self._znodes.read(path)
                if found is None:
                    continue
                if found.owner != session:
                    raise Conflict(_taken(read_node(node.nid, found.data))) from None
                if found.data != data and not self._tree.rewrite(path, data, found, session):
                    continue
            self._znodes.rejoined(session)
            return
        raise Conflict(f"the node {node.nid!r} is being changed concurrently")

    def all(self) -> Sequence[NodeInfo]:
        """The live nodes, sorted by nid."""
        nids = self._znodes.children(self._paths.nodes)
        found = self._znodes.read_all([f"{self._paths.nodes}/{nid}" for nid in nids])
        return [
            read_node(nid, znode.data)
            for nid, znode in zip(nids, found, strict=True)
            if znode is not None
        ]


def _taken(other: NodeInfo) -> str:
    """Why a node id cannot be had: who has it."""
    who = f"process {other.pid} on {other.host}" if other.host else "another process"
    return (
        f"the node id {other.nid!r} is in use by {who}; choose another one with --id or"
        " SETL_NODE_ID, or end that process"
    )
