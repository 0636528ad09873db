"""What a cluster tells of its disks: answers of nodes stats as Elasticsearch 8 writes them."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from setl.channel.file import ElasticsearchTarget
from setl.errors import TransientError
from setl.systems.expiry import DiskTarget, ServerDisk
from setl.systems.registry import system_of

GB = 1 << 30


def path(total, available, **more):
    """One path of a node; a node that keeps no rows tells no watermarks."""
    return {
        "path": "/usr/share/elasticsearch/data/nodes/0",
        "mount": "/usr/share/elasticsearch/data (/dev/nvme1n1)",
        "type": "ext4",
        "total_in_bytes": total,
        "free_in_bytes": available + GB,  # what root may use counts as free, too
        "available_in_bytes": available,
        **more,
    }


def node(name, roles, *paths):
    total = {
        field: sum(each[field] for each in paths)
        for field in ("total_in_bytes", "free_in_bytes", "available_in_bytes")
    }
    return {"name": name, "roles": roles, "fs": {"total": total, "data": list(paths)}}


MARKS = {
    "low_watermark_free_space_in_bytes": 15 * GB,
    "high_watermark_free_space_in_bytes": 10 * GB,
    "flood_stage_free_space_in_bytes": 5 * GB,
}
FULL = path(100 * GB, 4 * GB, **MARKS)
ROOMY = path(100 * GB, 60 * GB, **MARKS)
STATS = {
    "nodes": {
        "a": node("es-1", ["data_hot", "ingest"], ROOMY),
        "b": node("es-2", ["data"], ROOMY, FULL),
        "c": node("es-3", ["ingest", "master"], path(10 * GB, 0)),
    }
}


class Answering(BaseHTTPRequestHandler):
    def do_GET(self):
        status, body = self.server.answers  # pyright: ignore[reportAttributeAccessIssue]
        self.server.asked.append(self.path)  # pyright: ignore[reportAttributeAccessIssue]
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("x-elastic-product", "Elasticsearch")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format, *args):  # noqa: A002
        pass


@pytest.fixture
def cluster():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    server.answers = (200, STATS)  # pyright: ignore[reportAttributeAccessIssue]
    server.asked = []  # pyright: ignore[reportAttributeAccessIssue]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join(60)
    server.server_close()


def disks_of(cluster):
    target = ElasticsearchTarget(
        type="elasticsearch", hosts=[f"http://127.0.0.1:{cluster.server_port}"]
    )
    system = system_of(target)
    assert isinstance(system, DiskTarget)
    return system.disks()


def test_each_data_node_reports_of_its_fullest_path(cluster):
    at = f"127.0.0.1:{cluster.server_port}"
    assert disks_of(cluster) == [
        ServerDisk(f"es-1 of {at}", 100 * GB, 60 * GB, 10 * GB, 5 * GB),
        ServerDisk(f"es-2 of {at}", 100 * GB, 4 * GB, 10 * GB, 5 * GB),
    ]
    (asked,) = cluster.asked
    assert asked.startswith("/_nodes/stats/fs?")


def settings(enabled="true", **levels):
    return {
        level: {"cluster": {"routing": {"allocation": {"disk": {
            "threshold_enabled": enabled, "watermark": marks,
        }}}}}
        for level, marks in levels.items()
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answered", "expected"),
    [
        ({}, (None, None)),
        (settings(defaults={"low": "85%", "high": "90%", "flood_stage": "95%"}), (10 * GB, 5 * GB)),
        (
            settings(defaults={"high": "90%", "flood_stage": "95%"}, persistent={"high": "20gb"},
                     transient={"flood_stage": "0.96"}),
            (20 * GB, 4 * GB),
        ),
        (settings("false", defaults={"high": "90%", "flood_stage": "95%"}), (None, None)),
        (settings(defaults={"high": "much", "flood_stage": "95%"}), (None, 5 * GB)),
    ],
)  # fmt: skip
def test_a_server_without_watermarks_of_its_disks_has_them_in_its_settings(
    cluster, answered, expected
):
    """OpenSearch, and Elasticsearch before 7.15."""
    stats = {"nodes": {"a": node("es-1", ["data"], path(100 * GB, 60 * GB))}}
    cluster.answers = 200, {**stats, **answered}
    [found] = disks_of(cluster) or []
    rounded = tuple(None if free is None else round(free / GB) * GB for free in
                    (found.needed, found.last))  # fmt: skip
    assert rounded == expected


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (403, {"error": {"type": "security_exception", "reason": "lacks monitor"}, "status": 403}),
        (200, {"nodes": {"a": {"name": "es-1", "roles": ["data"], "fs": {}}}}),
        (200, {"nodes": {}}),
    ],
)
def test_what_is_not_reported_is_not_known(cluster, status, body):
    cluster.answers = status, body
    assert disks_of(cluster) is None


@pytest.mark.parametrize(
    "answers", [(503, {"error": {"type": "no_master", "reason": "none"}, "status": 503}), (200, [])]
)
def test_a_cluster_that_does_not_answer_is_an_error(cluster, answers):
    cluster.answers = answers
    with pytest.raises(TransientError):
        disks_of(cluster)
