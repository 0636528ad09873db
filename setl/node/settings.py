"""How one node is run; everything here comes from the command line or the environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field

from arbiter.access import Access
from arbiter.election import ElectionSettings
from setl.alarms.settings import AlarmSettings
from setl.node.http.exposure import Exposure


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """Settings of one node, whatever its pipelines run on.

    Attributes:
        nid: the node's id, unique among the live nodes.
        zookeeper: ZooKeeper's addresses, ``host:port,host:port``.
        root: the path in ZooKeeper under which everything lies.
        access: credentials and TLS for ZooKeeper.
        session_timeout: seconds of silence after which ZooKeeper declares the node dead.
        election: the rules of take-over.
        http_host: address the HTTP interface binds to.
        http_port: its port; 0 takes any free one, which the node announces.
        http_token: what a request that changes something must show; empty if none may.
        exposure: what of the HTTP interface is reached from where.
        console: whether it serves pages for people, too.
        metrics_tables: tables of a pipeline that have metrics of their own.
        cycle: seconds between two looks at the cluster when nothing wakes the node.
        alarms: whom it tells of alarms.
        environment: where ``${NAME}`` in channel files is looked up.
        spark_master: where its Spark runs, "" for a node without.
        spark_folders: Spark's setting `spark.local.dir`, whose disk is looked at; "" for none.
    """

    nid: str
    zookeeper: str
    root: str = "/setl"
    access: Access = field(default_factory=Access)
    session_timeout: float = 10.0
    election: ElectionSettings = field(default_factory=ElectionSettings)
    http_host: str = "127.0.0.1"
    http_port: int = 0
    http_token: str = field(
        default_factory=lambda: os.environ.get("SETL_HTTP_TOKEN", ""), repr=False
    )
    exposure: Exposure = field(default_factory=Exposure)
    console: bool = True
    metrics_tables: int = 100
    cycle: float = 0.5
    alarms: AlarmSettings = field(default_factory=AlarmSettings)
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ), repr=False)
    spark_master: str = ""
    spark_folders: str = ""


def default_nid() -> str:
    """A node id for people who give none: the machine's name."""
    return socket.gethostname().split(".")[0] or "node"
