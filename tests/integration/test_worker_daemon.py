"""Python workers of a session on this machine have imported what loads need before their first."""

import sys

from setl.run.worker_daemon import TASK_MODULES


def test_a_new_worker_has_everything(spark):
    wanted = (*TASK_MODULES, "pandas", "pyarrow")

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
