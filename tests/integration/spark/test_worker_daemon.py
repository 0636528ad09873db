"""Python workers of a session on this machine have imported what loads need before their first."""

import os
import sys
from pathlib import Path

import pyspark
import pytest

from setl.run.spark.worker_daemon import MODULES, TASK_MODULES, without_archives


def test_a_new_worker_has_everything(spark):
    wanted = (*MODULES, "pyarrow")

    def lacking(part):
        return [name for name in wanted if name not in sys.modules]

    assert spark.sparkContext.parallelize(range(4), 4).map(lacking).collect() == [[]] * 4


def test_workers_for_queries_have_everything(spark):
    wanted = (*TASK_MODULES, "pandas", "pyarrow")

    def lacking(batches):
        import pyarrow as pa

        for _ in batches:
            missing = " ".join(name for name in wanted if name not in sys.modules)
            yield pa.RecordBatch.from_arrays([pa.array([missing])], names=["missing"])

    rows = spark.range(4).mapInArrow(lacking, "missing string").collect()
    assert {row.missing for row in rows} == {""}


def test_what_forks_workers_has_one_thread(spark):
    def threads(_part):
        names = Path(f"/proc/{os.getppid()}/task").glob("*/comm")
        return [name.read_text().strip() for name in names]

    (found,) = set(map(tuple, spark.sparkContext.parallelize(range(4), 4).map(threads).collect()))
    assert len(found) == 1, f"a lock that another thread holds would hang a worker: {found}"


def test_workers_import_pyspark_compiled(spark):
    def where(_part):
        import pyspark

        return pyspark.__file__

    found = spark.sparkContext.parallelize([0], 1).map(where).collect()
    assert found == [pyspark.__file__]


def test_workers_do_not_read_the_archives_of_spark_again(spark):
    def archives(_part):
        # A path without an importer is no archive, such as the python311.zip that does not exist.
        opened = (path for path, importer in sys.path_importer_cache.items() if importer)
        return [path for path in opened if ".zip" in path or ".jar" in path]

    assert spark.sparkContext.parallelize([0], 1).map(archives).collect() == [[]]


ARCHIVES = [
    "python/lib/pyspark.zip",
    "python/lib/py4j-0.10.9.9-src.zip",
    "jars/spark-core_2.13-4.3.0.jar",
]


@pytest.fixture
def installed(tmp_path):
    for package in ("pyspark", "py4j"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    return tmp_path


def test_archives_beside_an_installed_pyspark_are_left_out(installed):
    archives = [str(installed / "pyspark" / name) for name in ARCHIVES]
    rest = ["/somewhere/own.zip", "/somewhere/jars/own.jar", str(installed)]
    assert without_archives([*archives, *rest]) == rest


def test_archives_are_stored_if_nothing_else_has_pyspark(installed, tmp_path):
    archives = [str(installed / "pyspark" / name) for name in ARCHIVES]
    path = [*archives, str(tmp_path / "empty")]
    assert without_archives(path) == path


def test_archives_of_a_spark_that_is_no_package_are_stored(installed):
    path = [f"/opt/spark/{name}" for name in ARCHIVES] + [str(installed)]
    assert without_archives(path) == path
