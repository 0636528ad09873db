"""The one long-lived Spark session of a node, and how it is warmed before it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """What may be chosen about the session.

    Attributes:
        master: where jobs run: ``local[2]``, ``spark://host:7077``, ``yarn``, ``k8s://…``.
        name: the application's name in Spark's own pages.
        conf: further Spark settings; they win over the defaults below, except those that
            correctness depends on.
    """

    master: str = "local[*]"
    name: str = "setl"
    conf: Mapping[str, str] = field(default_factory=dict[str, str])


_DEFAULTS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",  # it would draw over the node's log
    "spark.scheduler.mode": "FAIR",  # a slow pipeline must not hold up a fast one
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.shuffle.partitions": "4",
    "spark.sql.adaptive.enabled": "false",  # re-planning costs more than a batch takes
    "spark.python.worker.reuse": "true",
    "spark.shuffle.compress": "false",
    "spark.shuffle.spill.compress": "false",
    "spark.driver.memory": "1g",
    "spark.sql.legacy.createHiveTableByDefault": "false",
}

_REQUIRED = {
    "spark.speculation": "false",  # a second copy of a load task would write twice (I15)
    "spark.sql.session.timeZone": "UTC",  # times are UTC text everywhere else
    "spark.sql.ansi.enabled": "true",  # an overflow or a bad cast is an error, never a NULL
}


def start_session(settings: SparkSettings) -> SparkSession:
    """Start (or get) the session of this process. Takes about 8 seconds the first time."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(settings.name).master(settings.master)
    conf = dict(_DEFAULTS)
    if settings.master.startswith("local"):
        conf["spark.driver.bindAddress"] = "127.0.0.1"
        conf["spark.driver.host"] = "127.0.0.1"
    logging = Path(__file__).with_name("log4j2.properties").as_uri()
    conf["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile={logging}"
    for name, value in {**conf, **settings.conf, **_REQUIRED}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def parallelism(spark: SparkSession) -> int:
    """How many tasks can run at once."""
    return max(1, spark.sparkContext.defaultParallelism)
