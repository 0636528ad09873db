"""OpenSearch in a channel file, and as a URL."""

import pytest

from setl.channel.server_url import read_server_url


@pytest.mark.parametrize(
    ("url", "fields"),
    [
        ("opensearch://search", {"hosts": ["http://search:9200"]}),
        ("opensearch+https://retl@search:443", {"hosts": ["https://search:443"], "user": "retl"}),
    ],
)
def test_a_url(url, fields):
    server = read_server_url(url, "--to")
    assert server.fields == {"type": "opensearch", **fields}
    assert (server.schemas, server.password) == ((), "")
