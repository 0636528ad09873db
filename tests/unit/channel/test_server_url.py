"""URLs of servers, as `setl init --from` and `--to` take them."""

import pytest

from setl.channel.server_url import read_server_url
from setl.errors import ConfigurationError


@pytest.mark.parametrize(
    ("url", "fields", "schemas", "password"),
    [
        ("mysql://retl@db1:3307/shop",
         {"type": "mysql", "host": "db1", "port": 3307, "user": "retl"}, ("shop",), ""),
        ("mariadb://retl@db1", {"type": "mysql", "host": "db1", "port": 3306, "user": "retl"},
         (), ""),
        ("mysql://re%40tl:${SHOP_PW}@[::1]/a,b?ssl_ca=/etc/ca.pem&insecure_login=false",
         {"type": "mysql", "host": "::1", "port": 3306, "user": "re@tl", "ssl_ca": "/etc/ca.pem",
          "insecure_login": False}, ("a", "b"), "${SHOP_PW}"),
        ("elasticsearch://search", {"type": "elasticsearch", "hosts": ["http://search:9200"]},
         (), ""),
        ("https://elastic@search:443/es", {"type": "elasticsearch",
         "hosts": ["https://search:443/es"], "user": "elastic"}, (), ""),
    ],
)  # fmt: skip
def test_it_is_read(url, fields, schemas, password):
    server = read_server_url(url, "--from")
    assert (server.fields, server.schemas, server.password) == (fields, schemas, password)


@pytest.mark.parametrize(
    ("url", "what"),
    [
        ("db1:3306", "begins with db1://, which names no system"),
        ("db1", "has no scheme"),
        ("postgres://u@db1/x", "begins with postgres://"),
        ("mysql://db1/shop", "names no account"),
        ("mysql:///shop", "names no host"),
        ("mysql://u@db1:many/shop", "is no URL"),
        ("mysql://u@db1/shop#1", "has a # in it"),
        ("mysql://u:hunter2@db1/shop", "has a password in it"),
        ("mysql://u@db1/shop?password=hunter2", "gives password"),
        ("https://search?api_key=hunter2", "gives api_key"),
    ],
)
def test_what_is_wrong_is_said_without_a_secret(url, what):
    with pytest.raises(ConfigurationError) as caught:
        read_server_url(url, "--from")
    assert what in str(caught.value)
    assert caught.value.hint
    assert "hunter2" not in str(caught.value)
