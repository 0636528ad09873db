"""Servers that replicate what another one writes from now on."""

from setl_embedded import MySql
from tests.integration.pipelines import execute


def points_at(replica, source):
    """Have a server know its source, from the end of that one's binlog on; it does not start."""
    is_mysql = isinstance(replica, MySql)
    change, word = ("REPLICATION SOURCE", "SOURCE") if is_mysql else ("MASTER", "MASTER")
    status = "SHOW BINARY LOG STATUS" if is_mysql else "SHOW MASTER STATUS"
    file, position = execute(source, status)[0][:2]
    execute(
        replica,
        f"CHANGE {change} TO {word}_HOST = '{source.host}', {word}_PORT = {source.port},"
        f" {word}_USER = '{source.user}', {word}_PASSWORD = '{source.password}',"
        f" {word}_LOG_FILE = '{file}', {word}_LOG_POS = {position}"
        + (", GET_SOURCE_PUBLIC_KEY = 1" if is_mysql else ""),
    )
