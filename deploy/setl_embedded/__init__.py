"""The embedded stack: real servers on free ports of 127.0.0.1, for demo, tests and drills.

No containers and no system services: every server is an ordinary child process with a
private data folder. It ends when the process that started it ends, however that happens.
"""

from setl_embedded.asking import NoAnswerError, ask_json
from setl_embedded.database import DatabaseServer
from setl_embedded.errors import EmbeddedError
from setl_embedded.mariadb import MariaDb
from setl_embedded.mysql import MySql
from setl_embedded.noida import Elasticsearch, Kafka
from setl_embedded.server import Server
from setl_embedded.spark import SparkMaster, SparkWorker
from setl_embedded.stack import Stack
from setl_embedded.zookeeper import ZooKeeper, ZooKeeperEnsemble
from setl_embedded.zookeeper_security import ZooKeeperSecurity

__all__ = [
    "DatabaseServer",
    "Elasticsearch",
    "EmbeddedError",
    "Kafka",
    "MariaDb",
    "MySql",
    "NoAnswerError",
    "Server",
    "SparkMaster",
    "SparkWorker",
    "Stack",
    "ZooKeeper",
    "ZooKeeperEnsemble",
    "ZooKeeperSecurity",
    "ask_json",
]
