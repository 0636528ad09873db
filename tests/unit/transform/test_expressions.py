"""What a task makes of several stretches that Spark gave it; Spark itself is not started here."""

import pickle
from typing import Any

import pyarrow as pa

from setl.channel.routes.routing import Route
from setl.model.schema import Column, Kind, RowSchema
from setl.transform.columns import ColumnPlan
from setl.transform.evaluation import Evaluation
from setl.transform.expression_tasks import _COUNTS, _DELETE, UPSERT, packer
from setl.transform.merging import merge
from setl.transform.work import TransformPlan

ID, NAME = Column("id", Kind.INTEGER), Column("name", Kind.TEXT)
SCHEMA = RowSchema("shop", "t", (ID, NAME), key=(0,))
ROUTE = Route(0, ("shop", "t"), expressions={"loud": "upper(name)"})

NOWHERE: Any = None  # no table is looked up
PLAN = TransformPlan("binlog", NOWHERE)


def packed(*records):
    """The shares of records (kind, version, body, keep, expression's value)."""
    evaluation = Evaluation(
        ROUTE,
        SCHEMA,
        ColumnPlan.build(SCHEMA, ROUTE),
        (NAME,),
        (Column("loud", Kind.TEXT),),
        (ID, NAME, Column("loud", Kind.TEXT)),
    )
    kinds, versions, bodies, keeps, values = zip(*records, strict=True)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(kinds, pa.int8()),
            pa.array(versions, pa.int64()),
            pa.array([pickle.dumps(body) for body in bodies], pa.binary()),
            pa.array(keeps, pa.bool_()),
            pa.array(values, pa.string()),
        ],
        names=["kind", "version", "body", "keep", "loud"],
    )
    partitions = []
    for result in packer(PLAN, evaluation, 1)(iter([batch])):
        partitions += [
            pickle.loads(partition) for partition in result.column("partition").to_pylist()
        ]
    return partitions


END = (_COUNTS, 0, (1, 0, 0.0), False, None)


def test_a_delete_in_a_later_insert_partition_of_the_same_task_wins():
    (partition,) = packed(
        (UPSERT, 10, (1, "a"), True, "A"), END, (_DELETE, 20, (1,), False, None), END
    )
    (changes,) = merge(partition.changes)
    assert changes.upserts == []
    assert changes.deletes == [(1,)]
    assert partition.rows == 2


def test_a_row_that_where_refuses_becomes_a_delete_of_its_key():
    (partition,) = packed(
        (UPSERT, 10, (1, "a"), False, None), (UPSERT, 11, (2, "b"), True, "B"), END
    )
    (changes,) = merge(partition.changes)
    assert changes.deletes == [(1,)]
    assert changes.upserts == [(2, "b", "B")]
