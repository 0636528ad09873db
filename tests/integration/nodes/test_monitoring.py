"""Prometheus as in deploy/monitoring, at a cluster that lives and has faults."""

import json
import re
import shutil
import urllib.parse
import urllib.request

import pytest
import yaml

from setl_embedded.ports import free_port
from setl_embedded.process import spawn
from tests.integration.pipelines import execute, fresh_name, mysql
from tests.integration.two_nodes import command, is_warm, write
from tests.monitoring import MONITORING, prometheus_program
from tests.waiting import eventually

DASHBOARD = json.loads((MONITORING / "grafana" / "dashboards" / "setl.json").read_text())
WITHOUT_KAFKA = {"Records behind"}
"""Panels of what no channel without Kafka has."""


class Prometheus:
    """A server that scrapes the nodes each second, with the rules of deploy/monitoring."""

    def __init__(self, folder, cluster):
        self.folder = folder
        shutil.copytree(MONITORING, folder, dirs_exist_ok=True)
        self._quickly(folder / "prometheus.yml", r"_interval: \d+s", "_interval: 1s")
        # Faults need not last; `promtool test rules` looks at that.
        self._quickly(folder / "alerts.yml", r"for: \w+", "for: 1s")
        nodes = [address.removeprefix("http://") for address in cluster.http.values()]
        (folder / "targets.yml").write_text(yaml.safe_dump([{"targets": nodes}]))
        self.url = f"127.0.0.1:{free_port()}"
        self.process = spawn(
            "prometheus",
            [
                prometheus_program("prometheus"),
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/data",
                f"--web.listen-address={self.url}",
            ],
            log=folder / "prometheus.log",
            cwd=folder,
        )

    @staticmethod
    def _quickly(file, pattern, text):
        changed, number = re.subn(pattern, text, file.read_text())
        assert number
        file.write_text(changed)

    def _get(self, path, **parameters):
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://{self.url}/api/v1/{path}?{query}", timeout=20) as got:
            return json.load(got)["data"]

    def answers(self):
        assert self.process.running, self.process.tail()
        try:
            return bool(self._get("query", query="setl_leader")["result"])
        except OSError:
            return False

    def values(self, query):
        """The values now, those that are no number left out."""
        found = self._get("query", query=query)["result"]
        return [one["value"][1] for one in found if one["value"][1] != "NaN"]

    def most(self, query):
        """The largest value now; 0 without one, as after a scrape that came too late."""
        return max(map(float, self.values(query)), default=0)

    def firing(self):
        return {
            one["labels"]["alertname"]
            for one in self._get("alerts")["alerts"]
            if one["state"] == "firing"
        }


@pytest.fixture(scope="module")
def prometheus(cluster, tmp_path_factory):
    server = Prometheus(tmp_path_factory.mktemp("prometheus"), cluster)
    try:
        yield server
    finally:
        server.process.stop()


class Shop:
    """A channel that uses what the dashboard shows: a load, verification, dead letters."""

    def __init__(self, cluster, a, b):
        self.cluster, self.a, self.b = cluster, a, b
        self.name, self.db = fresh_name("watched"), fresh_name("shop")
        for server, width in ((a, 40), (b, 20)):
            execute(
                server,
                f"CREATE DATABASE {self.db}",
                f"CREATE TABLE {self.db}.t (id BIGINT PRIMARY KEY, v VARCHAR({width}))",
            )
        pipeline = {
            "name": "ab",
            "source": {**mysql(a), "password": "${SITE_A_PASSWORD}", "start": {"load": True}},
            "target": {**mysql(b), "password": "${SITE_B_PASSWORD}"},
            "faulty_rows": "dead_letter",
            "verify": {"every": 5},
            "tables": [{"from": f"{self.db}.t"}],
        }
        self.file = cluster.folder / f"{self.name}.yaml"
        self.file.write_text(yaml.safe_dump({"channel": self.name, "pipelines": [pipeline]}))

    def count(self):
        return execute(self.b, f"SELECT COUNT(*) FROM {self.db}.t")[0][0]

    def insert(self, number, text):
        execute(self.a, f"INSERT INTO {self.db}.t VALUES ({number}, '{text}')")

    def leader(self):
        (content,) = json.loads(command(self.cluster, "list", "-o", "json").stdout)
        name = f"{self.name}/ab"
        return next(p["leader"] for p in content["pipelines"] if p["pipeline"] == name)


@pytest.fixture(scope="module")
def shop(cluster, site_a, site_b):
    eventually(lambda: all(is_warm(cluster, nid) for nid in cluster.nodes), 280)
    shop = Shop(cluster, site_a, site_b)
    write(site_a, shop.db, 1, 500, size=100)
    command(cluster, "apply", str(shop.file), "--no-check")
    command(cluster, "start", shop.name, "--no-check")
    eventually(lambda: shop.count() == 500, 120)
    # A channel that is stopped is nobody's fault.
    stopped = shop.file.read_text().replace(shop.name, f"{shop.name}_stopped")
    (cluster.folder / "stopped.yaml").write_text(stopped)
    command(cluster, "apply", str(cluster.folder / "stopped.yaml"), "--no-check")
    yield shop
    command(cluster, "stop", shop.name, check=False)


def queries():
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", ()):
            if panel["title"] not in WITHOUT_KAFKA:
                yield panel["title"], target["expr"]


def asked(expr, shop):
    """A query of the dashboard with its variables' values."""
    ready = expr.replace("$channel", shop.name).replace("$pipeline", ".*")
    return re.sub(r"\$__\w+", "30s", ready)


def test_every_query_of_the_dashboard_gives_data(shop, prometheus):
    eventually(prometheus.answers, 60)
    numbers = iter(range(10_000, 100_000))

    def all_give_data():
        # Between two scrapes something has to happen, else there are no quantiles.
        shop.insert(next(numbers), "row")
        empty = [title for title, expr in queries() if not prometheus.values(asked(expr, shop))]
        assert not empty
        return True

    eventually(all_give_data, 120, interval=1.0)
    rows = f'setl_table_rows_total{{channel="{shop.name}",table="{shop.db}.t",kind="upserts"}}'
    eventually(lambda: prometheus.most(rows) >= 2, 60)
    statements = f'setl_statement_duration_seconds_count{{channel="{shop.name}"}}'
    eventually(lambda: prometheus.most(statements) > 0, 60, message="tasks send their times back")


def test_alerts_fire_in_the_faults_that_they_are_for(
    shop, prometheus, cluster, zookeeper_of_cluster
):
    def fires(*names):
        def seen():
            firing = prometheus.firing()
            assert set(names) <= firing
            return True

        eventually(seen, 120, interval=0.5)

    def nothing_fires():
        assert not prometheus.firing()
        return True

    eventually(prometheus.answers, 60)
    # Nothing fires while nothing is wrong.
    eventually(nothing_fires, 120, interval=0.5)

    execute(shop.b, f"INSERT INTO {shop.db}.t VALUES (7000, 'only here')")
    fires("SetlVerificationDifferences")
    execute(shop.b, f"DELETE FROM {shop.db}.t WHERE id = 7000")

    execute(shop.a, f"ALTER TABLE {shop.db}.t ADD INDEX (v)")
    fires("SetlSchemaChangeIgnored")

    shop.insert(8000, "x" * 30)
    fires("SetlDeadLetters")

    zookeeper_of_cluster.pause()
    try:
        fires("SetlNoContact")
    finally:
        zookeeper_of_cluster.resume()

    execute(shop.b, f"RENAME TABLE {shop.db}.t TO {shop.db}.hidden")
    shop.insert(8001, "row")
    fires("SetlPipelineFailed")
    execute(shop.b, f"RENAME TABLE {shop.db}.hidden TO {shop.db}.t")
    command(cluster, "start", shop.name, "--no-check")
    eventually(lambda: "SetlPipelineFailed" not in prometheus.firing(), 60)

    standby = next(nid for nid in cluster.nodes if nid != shop.leader())
    port = int(cluster.http[standby].rpartition(":")[2])
    cluster.nodes[standby].kill()
    try:
        fires("SetlNodeDown", "SetlNoStandby")
    finally:
        text = cluster.nodes[standby].log.stat().st_size
        as_json = ("--log-format", "json", "--log-spark", "info")
        cluster.start_node(standby, port, master="local[1]", options=as_json)
        eventually(lambda: is_warm(cluster, standby), 180)
    eventually(lambda: not prometheus.firing() & {"SetlNodeDown", "SetlNoStandby"}, 60)

    def loggers():
        log = cluster.nodes[standby].log.read_bytes()[text:]
        whole = log[: log.rfind(b"\n") + 1]  # the last line may be half written
        return {json.loads(line)["logger"] for line in whole.splitlines()}

    eventually(lambda: "spark" in loggers(), 60, message="the JVM's lines are objects, too")
