"""A cluster in memory with nodes that answer over HTTP, for tests of commands."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from arbiter.values import EVERYTHING, ChannelState, NodeInfo, PipelineId
from setl.cli.main import run
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

AB = PipelineId("shop", "ab")


def definition(name="shop", pipelines=("ab", "ba"), **options):
    return {
        "channel": name,
        "pipelines": [
            {
                "name": p,
                "source": {"type": "mysql", "host": "db1", "user": "u"},
                "target": {"type": "mysql", "host": "db2", "user": "u"},
                "tables": [{"from": "s.t"}],
                **options,
            }
            for p in pipelines
        ],
    }


class FakeNode:
    """A session and an HTTP interface; a test decides what it says and does."""

    def __init__(self, cluster, nid, *, ready=True, http=True, serves=EVERYTHING):
        self.arbiter = MemoryArbiter(cluster)
        self.nid = nid
        self.lines = {}
        self.server = None
        address = ""
        if http:
            node = self

            class Handler(BaseHTTPRequestHandler):
                def do_GET(self):
                    body = json.dumps({"nid": node.nid, "pipelines": node.status()}).encode()
                    self.send_response(200)
                    self.end_headers()
                    self.wfile.write(body)

                def log_message(self, format, *args):  # noqa: A002
                    return

            self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
            threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
            address = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.arbiter.nodes.announce(
            NodeInfo(nid, "host", 1, address, 0.0, ready=ready, serves=serves)
        )

    def says(self, pipeline, state, **figures):
        self.lines[pipeline] = {"state": state, "position": "b.000001:4", **figures}

    def status(self):
        return [
            {
                "channel": p.channel,
                "pipeline": p.pipeline,
                "decision": f"{self.nid} decided",
                "figures": figures,
            }
            for p, figures in self.lines.items()
        ]

    def leads(self, pipeline, state="running", **figures):
        leader_lock = self.arbiter.leader_locks.campaign(pipeline, self.nid)
        assert leader_lock.nid == self.nid
        self.says(pipeline, state, **figures)
        return leader_lock

    def stop(self):
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()


class Shop:
    """A cluster with the channel shop; commands run against it."""

    def __init__(self):
        self.cluster = MemoryCluster()
        self.arbiter = MemoryArbiter(self.cluster)
        self.nodes = {}
        self.put("shop")

    def put(self, name, state=ChannelState.START, **options):
        channel = self.arbiter.channels.put(name, definition(name, **options))
        self.arbiter.channels.set_state(channel, state)

    def node(self, nid, **options):
        self.nodes[nid] = FakeNode(self.cluster, nid, **options)
        return self.nodes[nid]

    def state(self, state, name="shop"):
        self.arbiter.channels.set_state(self.arbiter.channels.one(name), state)

    @contextmanager
    def connect(self, zookeeper, root):
        arbiter = MemoryArbiter(self.cluster)
        try:
            yield arbiter
        finally:
            arbiter.close()

    def run(self, *arguments):
        return run(arguments, connect=self.connect)

    def stop(self):
        for node in self.nodes.values():
            node.stop()
