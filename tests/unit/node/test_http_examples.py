"""The published examples ask for what the nodes answer."""

import re
from pathlib import Path

import pytest
import yaml

from arbiter.values import PipelineId
from setl.node.http.operations import LONGEST_WAIT

from .http_node import Node

EXAMPLES = Path(__file__).parents[3] / "deploy" / "examples"


@pytest.fixture
def node():
    node = Node()
    node.operator.channels.put("shop", {"pipelines": [{"name": "orders-to-search"}]})
    node.lead(PipelineId("shop", "orders-to-search"))
    yield node
    node.close()


@pytest.fixture(scope="module")
def haproxy():
    text = (EXAMPLES / "haproxy.cfg").read_text()
    sections, section = {}, []
    for line in text.splitlines():
        bare = line.split("#")[0].rstrip()
        if bare and not bare[0].isspace():
            section = sections.setdefault(bare, [])
        elif bare:
            section.append(bare.split())
    return sections


def test_haproxy_checks_what_a_node_answers(haproxy, node):
    checks = [
        words
        for lines in haproxy.values()
        for words in lines
        if words[:2] == ["http-check", "send"]
    ]
    assert len(checks) == 2
    for words in checks:
        asked = dict(zip(words[2::2], words[3::2], strict=True))
        assert node.ask(asked["meth"], asked["uri"]).code == 200


def test_haproxy_uses_only_what_it_declares(haproxy):
    backends = {name.split()[1] for name in haproxy if name.startswith("backend")}
    used = {
        words[1]
        for words in haproxy["frontend setl"]
        if words[0] in {"use_backend", "default_backend"}
    }
    assert used == backends
    for name, lines in haproxy.items():
        if name.startswith("backend"):
            assert [w for w in lines if w[0] == "server"]


def test_haproxy_says_itself_who_asks(haproxy):
    lines = haproxy["frontend setl"]
    assert lines.index(["http-request", "del-header", "X-Forwarded-For"]) < lines.index(
        ["option", "forwardfor"]
    )
    assert ["http-request", "set-header", "X-Forwarded-Proto", "https"] in lines


def test_haproxy_waits_longer_than_a_request_may(haproxy):
    limits = {w[1]: w[2] for w in haproxy["defaults"] if w[0] == "timeout"}
    for side in ("client", "server"):
        match = re.fullmatch(r"(\d+)s", limits[side])
        assert match
        assert int(match[1]) > LONGEST_WAIT


@pytest.mark.parametrize("name", ["startupProbe", "livenessProbe", "readinessProbe"])
def test_kubernetes_probes_what_a_node_answers(node, name):
    workload = yaml.safe_load((EXAMPLES.parent / "kubernetes" / "nodes.yaml").read_text())
    (container,) = workload["spec"]["template"]["spec"]["containers"]
    get = container[name]["httpGet"]
    assert node.get(get["path"]).code == 200
    assert get["port"] in {port["name"] for port in container["ports"]}
