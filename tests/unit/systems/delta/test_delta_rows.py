"""Rows of a Delta table after any changes are those that replaying the changes one by one gives."""

import json
import random
from dataclasses import replace
from decimal import Decimal

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from setl.errors import ConfigurationError, DataError
from setl.model.change import TargetChanges
from setl.model.schema import Capacity, Column, Kind
from setl.systems.delta import files, maintenance, sink
from setl.systems.delta.fence import DeltaFence
from setl.systems.delta.location import Location
from setl.systems.delta.sink import DeltaSinkSettings
from setl.systems.delta.types import delta_name, made_type
from tests.delta_tables import create_table, rows_of
from tests.loading import ticket_for

NAME = Column("name", Kind.TEXT)
NUMBER = Column("n", Kind.INTEGER)
KEYS = {
    "integer": (Column("id", Kind.INTEGER),),
    "unsigned": (Column("id", Kind.INTEGER, unsigned=True),),
    "decimal": (Column("id", Kind.DECIMAL, 38, 10),),
    "text": (Column("id", Kind.TEXT),),
    "bytes": (Column("id", Kind.BINARY),),
    "date": (Column("id", Kind.DATE),),
    "moment": (Column("id", Kind.DATETIME),),
    "composite": (Column("shop", Kind.TEXT), Column("id", Kind.INTEGER)),
    "moments": (Column("shop", Kind.DATE), Column("id", Kind.TIMESTAMP)),
}


def key_of(kind, number):
    if kind == "composite":
        return "aAbé"[number % 4], number // 8
    if kind == "moments":
        return key_of("date", number % 5) + key_of("moment", number)
    return (
        {
            "integer": number - 20,
            "unsigned": 2**64 - 1 - number,
            "decimal": f"1234567890123456789012345678.{number:010}",
            "text": f"{'Z' * 60}{chr(65 + number % 60)}{number // 60}",
            "bytes": bytes([255] * (number % 40)) + bytes([number % 256]),
            "date": f"{(0, 1000, 9999)[number % 3]:04}-01-{number % 28 + 1:02}",
            "moment": f"2026-01-01 00:00:00.{number:06}",
        }[kind],
    )


class Target:
    def __init__(self, folder, columns, **options):
        self.location = Location(str(folder))
        self.folder = self.location.of_table(("s", "t"))
        create_table(self.folder, columns)
        self.ticket = ticket_for("lake")
        DeltaFence(self.location, self.ticket.pipeline_key).raise_to(1, "n1")
        self.sink = DeltaSinkSettings(self.location, **options).make_sink()
        self.columns = columns

    def apply(self, *changes):
        return self.sink.apply(self.ticket, changes)

    def rows(self):
        return rows_of(self.folder, self.columns)


def changes(columns, key, upserts=(), deletes=(), **more):
    return TargetChanges(
        ("s", "t"), columns, key, list(upserts), list(deletes), [1] * len(upserts),
        [1] * len(deletes), **more,
    )  # fmt: skip


@pytest.mark.parametrize("kind", KEYS)
def test_any_changes_give_what_replaying_them_gives(tmp_path, monkeypatch, kind):
    """Files are small here, and are optimized now and then."""
    monkeypatch.setattr(files, "FILE_BYTES", 1_000)
    monkeypatch.setattr(maintenance, "FILE_BYTES", 3_000)
    key = KEYS[kind]
    columns = (*key, NAME, NUMBER)
    target = Target(tmp_path, columns, optimize=7)
    positions = tuple(range(len(key)))
    chance, replayed = random.Random(kind), {}
    for number in range(15):
        touched = {key_of(kind, chance.randrange(60)) for _ in range(chance.choice((1, 3, 40)))}
        gone = [k for k in touched if chance.random() < 0.3]
        # Some rows do not say all of their columns, as those of an older schema.
        full = {k: (f"{number}", number) for k in touched if k not in gone and k not in replayed}
        some = {k: (f"{number}",) for k in touched if k not in gone and k in replayed}
        again = {k for k in some if chance.random() < 0.2}
        target.apply(
            changes(columns, positions, [k + v for k, v in full.items()], [*gone, *again]),
            changes((*key, NAME), positions, [k + v for k, v in some.items()]),
        )
        for k in gone:
            replayed.pop(k, None)
        for k, (name,) in some.items():
            replayed[k] = (name, None if k in again else replayed[k][1])
        replayed.update(full)
        assert target.rows() == {k + v for k, v in replayed.items()}
    table = DeltaTable(target.folder.uri)
    if replayed:
        with duckdb.connect() as connection:
            files_read = f"read_parquet({table.file_uris()})"
            read = connection.sql(f"SELECT count(*) FROM {files_read}").fetchall()
        assert read == [(len(replayed),)]


def test_what_the_log_says_of_files_is_exact(tmp_path):
    """Whoever reads the table skips files by it; what JSON cannot say exactly is left out."""
    columns = (
        Column("id", Kind.INTEGER), Column("u", Kind.INTEGER, unsigned=True),
        Column("day", Kind.DATE), NAME, Column("size", Kind.FLOAT),
    )  # fmt: skip
    target = Target(tmp_path, columns)
    rows = [(2**63 - 1, 2**64 - 1, "1000-01-01", "a", 0.1), (-(2**63), None, "9999-12-31", "b", 2)]
    target.apply(changes(columns, (0,), rows))
    log = (tmp_path / "s/t/_delta_log/00000000000000000001.json").read_text().splitlines()
    (added,) = [json.loads(line)["add"] for line in log if '"add"' in line]
    assert json.loads(added["stats"]) == {
        "numRecords": 2,
        "minValues": {"id": -(2**63), "day": "1000-01-01"},
        "maxValues": {"id": 2**63 - 1, "day": "9999-12-31"},
        "nullCount": {"id": 0, "day": 0},
    }
    table = DeltaTable(target.folder.uri)
    largest = pc.field("u") == pa.scalar(Decimal(2**64 - 1), pa.decimal128(20, 0))
    assert len([*table.to_pyarrow_dataset().get_fragments(filter=largest)]) == 1


def test_a_file_whose_keys_lie_elsewhere_is_left_alone(tmp_path):
    columns = (Column("id", Kind.INTEGER), NAME)
    target = Target(tmp_path, columns)
    for first in (0, 100, 200):
        target.apply(changes(columns, (0,), [(first + n, "x") for n in range(50)]))
    before = set(DeltaTable(target.folder.uri).file_uris())
    target.apply(changes(columns, (0,), [(110, "y")], [(120,)]))
    after = set(DeltaTable(target.folder.uri).file_uris())
    assert len(before & after) == 2
    assert len(after) == 3
    version = DeltaTable(target.folder.uri).version()
    target.apply(changes(columns, (0,), [], [(70,), (2**70,)]))  # nothing of it is there
    assert DeltaTable(target.folder.uri).version() == version


def test_old_files_are_deleted_when_their_time_is_over(tmp_path, monkeypatch):
    monkeypatch.setattr(maintenance, "LEAST_RETENTION", 0)
    columns = (Column("id", Kind.INTEGER), NAME)
    target = Target(tmp_path, columns, optimize=1, vacuum=True)
    DeltaTable(target.folder.uri).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": "interval 0 hours"}
    )
    for number in range(5):
        target.apply(changes(columns, (0,), [(number, "x")]))
    present = [*(tmp_path / "s/t").glob("*.parquet")]
    assert len(present) == 1
    assert len(target.rows()) == 5


@pytest.mark.parametrize("time", ["5 nanoseconds", "1 microseconds", "7 milliseconds"])
def test_the_shortest_times_keep_no_file_less_than_a_day(tmp_path, time):
    columns = (Column("id", Kind.INTEGER), NAME)
    target = Target(tmp_path, columns, optimize=1, vacuum=True)
    DeltaTable(target.folder.uri).alter.set_table_properties(
        {"delta.deletedFileRetentionDuration": f"interval {time}"}
    )
    for number in range(3):
        target.apply(changes(columns, (0,), [(number, "x")]))
    assert len([*(tmp_path / "s/t").glob("*.parquet")]) == 5


@pytest.mark.parametrize("how", ["compact", "z_order"])
def test_rows_that_somebody_else_joins_meanwhile_are_there_once(tmp_path, how):
    """delta-rs began to rewrite files that are rewritten here before it commits."""
    columns = (Column("id", Kind.INTEGER), NAME)
    target = Target(tmp_path, columns, optimize=3)
    for number in range(2):
        target.apply(changes(columns, (0,), [(number, "x")]))
    begun = DeltaTable(target.folder.uri)
    target.apply(changes(columns, (0,), [(2, "x")]))  # the third commit
    assert len(DeltaTable(target.folder.uri).file_uris()) == 1
    with pytest.raises(CommitFailedError):
        begun.optimize.compact() if how == "compact" else begun.optimize.z_order(["id"])
    assert len(target.rows()) == 3


def test_files_of_other_writers_are_not_taken_for_old_ones(tmp_path, monkeypatch):
    """Somebody commits between a load and the deletion of what it does not need."""
    columns = (Column("id", Kind.INTEGER), NAME)
    target = Target(tmp_path, columns, optimize=1, vacuum=True)
    for said in ("interval 0 hours", "interval 59 minutes", "interval 23 hours"):
        table = DeltaTable(target.folder.uri)
        table.alter.set_table_properties({"delta.deletedFileRetentionDuration": said})

        def reached(point, said=said):
            if point == "task.after_commit":
                other = pa.table({"id": [len(said)], "name": [said]})
                write_deltalake(target.folder.uri, other, mode="append")

        monkeypatch.setattr(sink.failpoints, "reached", reached)
        target.apply(changes(columns, (0,), [(1, said)]))
        assert (len(said), said) in target.rows()


@pytest.mark.parametrize(
    ("more", "error"),
    [({"partial": True}, "mentions only"), ({"unlogged": ("g",)}, "does not mention g")],
)
def test_half_a_row_is_refused(tmp_path, more, error):
    columns = (Column("id", Kind.INTEGER), NAME)
    target = Target(tmp_path, columns)
    with pytest.raises(DataError, match=error):
        target.apply(changes(columns, (0,), [(1, "x")], **more))


def test_rows_that_cannot_be_told_apart_are_refused(tmp_path):
    columns = (Column("id", Kind.FLOAT), NAME)
    target = Target(tmp_path, columns)
    with pytest.raises(ConfigurationError, match=r"0\.0 and -0\.0"):
        target.apply(changes(columns, (0,), [(1.0, "x")]))
    with pytest.raises(ConfigurationError, match="without a key"):
        target.apply(changes(columns, (0, 1), [(1.0, "x")], keyless=True))
    with pytest.raises(DataError, match="is NULL"):
        target.apply(changes(columns, (1,), [(1.0, None)]))
    day = (Column("id", Kind.DATE), NAME)
    with pytest.raises(DataError, match="is NULL"):
        Target(tmp_path / "days", day).apply(changes(day, (0,), [("0000-01-01", "a"), (None, "b")]))


def test_a_column_that_does_not_hold_the_values_is_named(tmp_path):
    own, number = Column("id", Kind.INTEGER), Column("name", Kind.INTEGER)
    target = Target(tmp_path, (own, NAME))
    with pytest.raises(ConfigurationError, match="column name of the Delta table is string"):
        target.apply(changes((own, number), (0,), [(1, 2)]))
    with pytest.raises(ConfigurationError, match="has no column n"):
        target.apply(changes((own, NUMBER), (0,), [(1, 2)]))
    with pytest.raises(ConfigurationError, match="column id of the Delta table is long"):
        target.apply(changes((Column("id", Kind.TEXT), NAME), (0,), [], [("1",)]))
    with pytest.raises(DataError, match="a value that long cannot") as refused:
        target.apply(changes((own, NAME), (0,), [(1, "a"), (2**63, "b")]))
    assert refused.value.where["key"] == str(2**63)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"partition_by": ["name"]}, "partitioned by name"),
        ({"configuration": {"delta.appendOnly": "true"}}, "cannot be replaced"),
        ({"configuration": {"delta.enableChangeDataFeed": "true"}}, "describe its changes"),
        ({"configuration": {"delta.enableDeletionVectors": "true"}}, "not there"),
    ],
    ids=lambda x: "" if isinstance(x, str) else next(iter(x)),
)
def test_tables_that_ask_more_of_a_writer_are_refused(tmp_path, options, why):
    columns = (Column("id", Kind.INTEGER), NAME)
    location = Location(str(tmp_path))
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    DeltaTable.create(location.of_table(("s", "t")).uri, schema, **options)
    ticket = ticket_for("lake")
    DeltaFence(location, ticket.pipeline_key).raise_to(1, "n1")
    with pytest.raises(ConfigurationError, match=why):
        DeltaSinkSettings(location).make_sink().apply(ticket, [changes(columns, (0,), [(1, "a")])])


def test_a_property_that_somebody_sets_stops_nothing(tmp_path):
    """delta-rs gives the table features then, which say only that it may have certain types."""
    columns = (Column("id", Kind.INTEGER), Column("at", Kind.DATETIME))
    target = Target(tmp_path, columns)
    table = DeltaTable(target.folder.uri)
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 3 days"})
    assert "variantType" in (DeltaTable(target.folder.uri).protocol().writer_features or ())
    target.apply(changes(columns, (0,), [(1, "2026-01-01 00:00:00.000000")]))
    assert len(target.rows()) == 1
    for log in (tmp_path / "s/t/_delta_log").iterdir():
        text = log.read_text().replace("timestamp_ntz", "variant")
        log.write_text(text)
    with pytest.raises(ConfigurationError, match="values of the type variant"):
        target.apply(changes(columns[:1], (0,), [(1,)]))


def test_columns_are_made_as_wide_as_they_have_to_be():
    def made(kind, *args, named="", length=0, **more):
        capacity = Capacity(named, length) if named else None
        return delta_name(made_type(Column("c", kind, *args, capacity=capacity, **more)))

    assert made(Kind.INTEGER) == "long"
    assert made(Kind.INTEGER, unsigned=True) == "decimal(20,0)"
    assert made(Kind.INTEGER, unsigned=True, named="int") == "long"
    assert made(Kind.DECIMAL, 38, 10) == "decimal(38,10)"
    assert made(Kind.DECIMAL, 39, 10) == "string"
    assert made(Kind.BIT, named="bit", length=63) == "long"
    assert made(Kind.BIT, named="bit", length=64) == "decimal(20,0)"
    assert made(Kind.FLOAT, width=4) == "float"
    assert made(Kind.FLOAT, width=8) == "double"
    assert made(Kind.TEXT, named="uuid") == "binary"


def test_columns_that_take_no_null_get_none(tmp_path):
    columns = (Column("id", Kind.INTEGER), NAME)
    location = Location(str(tmp_path / "with a blank"))
    folder = location.of_table(("s", "表$1"))
    schema = pa.schema([pa.field("id", pa.int64()), pa.field("name", pa.string(), nullable=False)])
    DeltaTable.create(folder.uri, schema, mode="error")
    ticket = ticket_for("lake")
    DeltaFence(location, ticket.pipeline_key).raise_to(1, "n1")
    sink = DeltaSinkSettings(location).make_sink()

    def to(change):
        return replace(change, target=("s", "表$1"))

    with pytest.raises(DataError, match="name of the Delta table takes no NULL") as refused:
        sink.apply(ticket, [to(changes(columns, (0,), [(1, "a"), (2, None)]))])
    assert refused.value.where["key"] == "2"
    with pytest.raises(ConfigurationError, match="nothing fills it"):
        sink.apply(ticket, [to(changes(columns[:1], (0,), [(1,)]))])
    sink.apply(ticket, [to(changes(columns, (0,), [(1, "a")]))])
    assert rows_of(folder, columns) == {(1, "a")}
