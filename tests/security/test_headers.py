"""No browser takes an answer for something else than it is, and nothing keeps figures."""

import pytest

PATHS = [
    "/",
    "/status",
    "/cluster",
    "/health",
    "/metrics",
    "/history",
    "/nowhere",
    "/console/login",
]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer(node, path):
    reply = node.get(path)
    assert reply.headers.get_all("X-Content-Type-Options") == ["nosniff"]
    assert reply.headers.get_all("Cache-Control") == ["no-store"]


def test_an_action(node):
    reply = node.post("/pause", {"channel": "shop"})
    assert reply.headers["X-Content-Type-Options"] == "nosniff"


def test_files_of_pages_are_asked_for_again(node):
    assert node.get("/console/static/console.js").headers.get_all("Cache-Control") == ["no-cache"]
