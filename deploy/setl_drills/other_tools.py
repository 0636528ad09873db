"""What else writes to the server of a managed site: heartbeats, checksums, an online schema change.

The first two are logged as statements, whatever the server's own format is: the agent of Amazon RDS
writes so, and pt-table-checksum asks for it, since its statements are to run on replicas again. The
online schema change is what gh-ost runs.
"""

from __future__ import annotations

import threading
import time

import pymysql
from pymysql.connections import Connection

from setl_drills.tables import TABLES
from setl_embedded import DatabaseServer

_HEARTBEATS = "mysql.rds_heartbeat2"
_CHECKSUMS = "percona.checksums"
_BY_STATEMENT = "SET SESSION binlog_format = STATEMENT"
_CREATE = (
    f"CREATE TABLE IF NOT EXISTS {_HEARTBEATS} (id INT NOT NULL PRIMARY KEY, value BIGINT)",
    "CREATE DATABASE IF NOT EXISTS percona",
    f"""CREATE TABLE IF NOT EXISTS {_CHECKSUMS} (
        db CHAR(64) NOT NULL, tbl CHAR(64) NOT NULL, chunk INT NOT NULL, chunk_time FLOAT NULL,
        chunk_index VARCHAR(200) NULL, lower_boundary TEXT NULL, upper_boundary TEXT NULL,
        this_crc CHAR(40) NOT NULL, this_cnt INT NOT NULL, master_crc CHAR(40) NULL,
        master_cnt INT NULL, ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP
        ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (db, tbl, chunk))""",
)
_CHECKSUM = (
    f"REPLACE INTO `{_CHECKSUMS.replace('.', '`.`')}` (db, tbl, chunk, chunk_index,"
    " lower_boundary, upper_boundary, this_cnt, this_crc) SELECT '{schema}', '{table}', '1', NULL,"
    " NULL, NULL, COUNT(*) AS cnt, COALESCE(LOWER(CONV(BIT_XOR(CAST(CRC32(CONCAT_WS('#', `id`,"
    " `site`, CONCAT(ISNULL(`site`)))) AS UNSIGNED)), 10, 16)), 0) AS crc FROM `{schema}`.`{table}`"
    " FORCE INDEX(`PRIMARY`) WHERE ((`id` >= '1')) /*checksum chunk*/"
)


class OtherTools(threading.Thread):
    """Writes heartbeats each second; checksums and an online schema change when asked."""

    def __init__(self, server: DatabaseServer, schema: str) -> None:
        """Describe it; nothing is written before `start`.

        Args:
            server: the site.
            schema: of the drill.
        """
        super().__init__(name="other-tools", daemon=True)
        self.heartbeats = 0
        self._server = server
        self._schema = schema
        self._stopping = threading.Event()

    def run(self) -> None:
        """See `threading.Thread`."""
        while not self._stopping.is_set():
            try:
                with self._server.connect(read_timeout=30) as connection:
                    _run(connection, *_CREATE, _BY_STATEMENT)
                    self._beat(connection)
            except (pymysql.MySQLError, OSError):
                self._stopping.wait(0.5)  # the site is away

    def _beat(self, connection: Connection) -> None:
        while not self._stopping.wait(1.0):
            now = int(time.time() * 1000)
            _run(
                connection,
                f"INSERT INTO {_HEARTBEATS}(id, value) values (1,{now}) ON DUPLICATE KEY UPDATE"
                f" value = {now}",
            )
            self.heartbeats += 1

    def checksum(self) -> None:
        """Go through all tables as pt-table-checksum does."""
        with self._server.connect() as connection:
            _run(
                connection,
                *_CREATE,
                _BY_STATEMENT,
                "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
                f"DELETE FROM {_CHECKSUMS} WHERE db = '{self._schema}'",
            )
            for table in TABLES:
                partition = f"db = '{self._schema}' AND tbl = '{table}' AND chunk = '1'"
                _run(
                    connection,
                    _CHECKSUM.format(schema=self._schema, table=table),
                    f"UPDATE `percona`.`checksums` SET chunk_time = '0.01', master_crc = this_crc,"
                    f" master_cnt = this_cnt WHERE {partition}",
                )

    def change_online(self, table: str) -> None:
        """Give a table an index as gh-ost does, while nobody writes to it."""
        old, new, log = (f"`{self._schema}`.`_{table}_{part}`" for part in ("del", "gho", "ghc"))
        there = f"`{self._schema}`.`{table}`"
        with self._server.connect() as connection:
            _run(
                connection,
                f"CREATE /* gh-ost */ TABLE {log} (id BIGINT AUTO_INCREMENT, hint VARCHAR(64)"
                " CHARACTER SET ascii NOT NULL, value VARCHAR(4096) NOT NULL, PRIMARY KEY (id),"
                " UNIQUE KEY hint_uidx (hint)) AUTO_INCREMENT=256",
                f"CREATE /* gh-ost */ TABLE {new} LIKE {there}",
                f"ALTER /* gh-ost */ TABLE {new} ADD INDEX site_id (site, id)",
                f"INSERT /* gh-ost */ INTO {log} (hint, value) VALUES ('state', 'Migrated')",
                f"INSERT /* gh-ost */ IGNORE INTO {new} SELECT * FROM {there}",
                f"RENAME /* gh-ost */ TABLE {there} TO {old}, {new} TO {there}",
                f"DROP TABLE /* gh-ost */ IF EXISTS {old}, {log}",
            )

    def stop(self) -> None:
        """Stop writing, and leave nothing behind."""
        self._stopping.set()
        self.join(30)
        with self._server.connect() as connection:
            _run(
                connection,
                f"DROP TABLE IF EXISTS {_HEARTBEATS}",
                "DROP DATABASE IF EXISTS percona",
            )


def _run(connection: Connection, *statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
