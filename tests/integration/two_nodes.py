"""Two real nodes, a two-way channel between two servers, and the commands that people type."""

import json
import os
import subprocess
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from unittest.mock import patch

import yaml

from setl.cli.main import run
from setl.node.cluster.view import NO_ANSWER
from tests.integration.pipelines import execute, fresh_name, mysql, rows
from tests.waiting import eventually

TOKEN = "a-token-of-the-tests"
TIMEOUT = 6.0  # session timeout of the nodes


def is_warm(cluster, nid):
    assert cluster.nodes[nid].running, cluster.nodes[nid].tail()
    status = cluster.status(nid)
    return bool(status and status["warm"] and status["contact"] == "connected")


def command(cluster, *arguments, check=True):
    """A command as `Cluster.run` gives it, in this process: starting one takes a second."""
    out, err = StringIO(), StringIO()
    with (
        patch.dict(os.environ, cluster._environment),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        status = run(arguments)
    assert not check or status == 0, f"setl {arguments}: {status}\n{out.getvalue()}{err.getvalue()}"
    return subprocess.CompletedProcess(arguments, status, out.getvalue(), err.getvalue())


class Channel:
    """A two-way channel over one table, applied and started by commands."""

    def __init__(self, cluster, a, b, **source):
        self.cluster, self.a, self.b = cluster, a, b
        self.name = fresh_name("both")
        self.db = fresh_name("shop")
        for server in (a, b):
            execute(
                server,
                f"CREATE DATABASE {self.db}",
                f"CREATE TABLE {self.db}.t (id BIGINT PRIMARY KEY, v VARCHAR(40))",
            )
        ends = [
            {**mysql(a), "password": "${SITE_A_PASSWORD}"},
            {**mysql(b), "password": "${SITE_B_PASSWORD}"},
        ]
        tables = [{"from": f"{self.db}.t"}]
        self.file = cluster.folder / f"{self.name}.yaml"
        self.file.write_text(
            yaml.safe_dump(
                {
                    "channel": self.name,
                    "pipelines": [
                        {
                            "name": name,
                            "source": {**ends[begin], **source},
                            "target": {**ends[1 - begin], "fence_timeout": 1},
                            "tables": tables,
                        }
                        for begin, name in enumerate(("ab", "ba"))
                    ],
                }
            )
        )

    def listed(self):
        """What `setl list` tells of each pipeline, with what its leader says.

        A leader that a busy machine holds up for two seconds is asked again: until then its figures
        are missing.
        """

        def reported():
            found = self._look()
            assert NO_ANSWER not in {p["state"] for p in found.values()}, found
            return found

        return eventually(reported, 60)

    def _look(self):
        done = command(self.cluster, "list", "-o", "json")
        content = json.loads(done.stdout)[0]
        return {
            p["pipeline"].rpartition("/")[2]: p
            for p in content["pipelines"]
            if p["pipeline"].startswith(self.name + "/")
        }

    def leader(self, pipeline="ab"):
        return self._look()[pipeline]["leader"]

    def equal(self):
        return rows(self.a, f"{self.db}.t") == rows(self.b, f"{self.db}.t")

    def count(self, server):
        return execute(server, f"SELECT COUNT(*) FROM {self.db}.t")[0][0]


def write(server, db, start, count, size=1):
    with server.connect(autocommit=False) as connection, connection.cursor() as cursor:
        for first in range(start, start + count, size):
            cursor.executemany(
                f"INSERT INTO {db}.t VALUES (%s, %s)",
                [(i, f"row {i}") for i in range(first, min(first + size, start + count))],
            )
            connection.commit()
