"""What a source of Debezium's records promises beside what every source does."""

from setl.errors import FatalError
from tests.contract.source_sides import StandaloneSide, until_error
from tests.unit.formats.debezium.records import debezium, key


def test_a_tombstone_whose_delete_was_removed_stops(kafka):
    side = StandaloneSide(kafka, "debezium")
    try:
        gone, kept = key(id=1), key(id=2)
        for record_key, value in (
            *[(kept, debezium("c", after={"id": 2}))] * 100,
            (gone, debezium("d", before={"id": 1})),
            (gone, None),
            (kept, None),
        ):
            side.producer.send(side.topic, value, key=record_key, partition=0)
        side.producer.flush()
        source = side.source()
        source.open(side.origin)
        error, _ = until_error(source)
        assert isinstance(error, FatalError)
        assert f"{side.topic}[0]@103" in str(error)
        assert "cleanup.policy" in error.hint
    finally:
        side.close()
