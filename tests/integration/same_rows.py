"""Two sites that write the same rows, and a channel that keeps them in step both ways."""

from setl.channel.reading import parse_channel
from tests.integration.pipelines import binlog_end, execute, fresh_name, mysql, rows
from tests.waiting import eventually

STOCK = """CREATE TABLE {db}.stock (
    id BIGINT PRIMARY KEY, name VARCHAR(40) NULL, amount DECIMAL(12,3) NULL, rate DOUBLE NULL,
    raw VARBINARY(20) NULL, at DATETIME(3) NULL, touched BIGINT NOT NULL DEFAULT 0)
    CHARACTER SET utf8mb4"""
OTHER = "CREATE TABLE {db}.plain (id BIGINT PRIMARY KEY, v INT)"
POLICIES = {"home": "home", "newest": {"newest": "touched"}}


class SameRows:
    """A database on two servers, and runs of both directions."""

    def __init__(
        self, position, servers, policy, home=None, sources=None, plain="source", **options
    ):
        self.position, self.servers = position, servers
        self.db = fresh_name("stock")
        for server in servers:
            execute(
                server,
                f"CREATE DATABASE {self.db}",
                STOCK.format(db=self.db),
                OTHER.format(db=self.db),
            )
        tables = [
            {"from": f"{self.db}.stock", "conflict": POLICIES.get(policy, policy)},
            {"from": f"{self.db}.plain", "conflict": plain},
        ]
        self.runs = {}
        sources = sources or [
            {**mysql(server), "start": binlog_end(server), "heartbeat": 0} for server in servers
        ]
        ends = zip(("ab", "ba"), sources, servers[::-1], strict=True)
        pipelines = [
            {
                "name": name,
                "source": source,
                "target": mysql(target),
                "tables": tables,
                **options,
            }
            for name, source, target in ends
        ]
        channel = {"channel": fresh_name("both"), "pipelines": pipelines}
        self.file = parse_channel(channel | ({"home": home} if home else {}))

    @property
    def table(self):
        return f"{self.db}.stock"

    def close(self):
        for server in self.servers:
            execute(server, f"DROP DATABASE {self.db}")

    def write(self, site, *statements):
        """Statements of a site's users; {t} is the table."""
        execute(self.servers[site], *(s.format(t=self.table) for s in statements))

    def lead(self, *names, nid="n1"):
        for name in names or ("ab", "ba"):
            self.runs[name] = self.position.lead(self.file, name, nid=nid)

    def replace_leader(self, name, nid):
        """The leader is cut off, and another takes over from the stored checkpoint."""
        self.runs[name].abort()
        self.lead(name, nid=nid)

    def rows(self, site):
        return rows(self.servers[site], self.table)

    def conflicts(self, site, what="winner"):
        """What the pipeline that writes at a site has decided."""
        name = ("ba", "ab")[site]
        return execute(
            self.servers[site],
            f"SELECT {what} FROM retl.setl_conflict WHERE pipeline = '{self.file.channel}/{name}'"
            " ORDER BY id",
        )

    def stored(self):
        """How many rows of both sites are kept until the other site has passed them."""
        return sum(
            execute(
                server,
                "SELECT COUNT(*) FROM retl.setl_recent"
                f" WHERE pipeline LIKE '{self.file.channel}/%' AND kept IS NOT NULL"
                " AND table_name = 'stock'",
            )[0][0]
            for server in self.servers
        )

    def wait_until_equal(self, timeout=120):
        """Wait until the sites have nothing more to tell each other; returns the rows of both."""
        for _ in range(50):
            self._passed(timeout)
            if not self.stored():
                return self.rows(0), self.rows(1)
        raise AssertionError("the sites go on telling each other")

    def _passed(self, timeout):
        """Wait until each direction has applied all that its source has written by now."""
        for site in (0, 1):
            execute(
                self.servers[site],
                f"REPLACE INTO {self.db}.plain VALUES ({site}, 1 + (SELECT COALESCE(MAX(v), 0)"
                f" FROM {self.db}.plain AS p))",
            )
        for site in (0, 1):
            there = execute(self.servers[site], f"SELECT v FROM {self.db}.plain WHERE id = {site}")

            def arrived(site=site, there=there):
                for name, run in self.runs.items():
                    if not run.thread.is_alive():
                        raise RuntimeError(f"{name} has ended: {run.error}")
                other = self.servers[1 - site]
                return execute(other, f"SELECT v FROM {self.db}.plain WHERE id = {site}") == there

            eventually(arrived, timeout, message=f"what site {site} wrote is at the other")
