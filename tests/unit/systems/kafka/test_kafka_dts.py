"""What the Kafka client gets to see, and what it does that an embedded broker does not."""

from zlib import crc32

import pytest

from setl.channel.file import DtsSource, OffsetStart
from setl.codec.dts.relayed import HEADER, HEARTBEAT, LAST, RelayPlace, RelayTransaction
from setl.codec.dts.rows import DtsRowCodec
from setl.errors import ConfigurationError, FatalError, PositionLostError, TransientError
from setl.model.entry import EntryKind
from setl.model.position import KafkaOrigin, KafkaPosition
from setl.systems.kafka import reader as kafka_reader
from setl.systems.kafka.client import Bounds
from setl.systems.kafka.reader import TopicReader
from setl.systems.kafka.settings import source_settings
from setl.systems.kafka.source import access as kafka_access
from setl.systems.kafka.source import runs as kafka_runs
from setl.systems.kafka.source.subscription import DtsKafkaSource
from tests.unit.codec.dts_records import integer, row_record
from tests.unit.codec.dts_records import record as dts_record
from tests.unit.select.fakes import ManualClock


def config(**more):
    return DtsSource(type="dts", brokers=["b1:9092", "b2:9092"], topic="orders", **more)


def test_the_place_is_kept_by_setl_and_not_by_kafka():
    settings = source_settings(config())
    assert settings["bootstrap.servers"] == "b1:9092,b2:9092"
    assert settings["enable.auto.commit"] is False
    assert settings["enable.auto.offset.store"] is False
    assert settings["isolation.level"] == "read_committed"
    assert "sasl.mechanism" not in settings


def test_a_dts_account_has_the_group_in_its_name():
    settings = source_settings(config(user="reader", sid="dts123", password="s3cret"))
    assert settings["sasl.username"] == "reader-dts123"
    assert settings["group.id"] == "dts123"
    assert (settings["security.protocol"], settings["sasl.mechanism"]) == (
        "SASL_PLAINTEXT",
        "PLAIN",
    )


def test_settings_of_the_channel_win_under_any_spelling():
    passed = {
        "security.protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-256",
        "check_crcs": False,
        "session.timeout.ms": 7000,
        # As kafka-python calls them.
        "sasl_plain_username": "else",
        "ssl_cafile": "/ca.pem",
        "ssl_check_hostname": False,
        "fetch.max.wait.ms": 7,
    }
    settings = source_settings(config(user="u", kafka=passed))
    assert settings["security.protocol"] == "SASL_SSL"
    assert settings["sasl.mechanism"] == "SCRAM-SHA-256"
    assert settings["check.crcs"] is False
    assert settings["session.timeout.ms"] == 7000
    assert settings["sasl.username"] == "else"
    assert settings["ssl.ca.location"] == "/ca.pem"
    assert settings["ssl.endpoint.identification.algorithm"] == "none"
    assert settings["fetch.wait.max.ms"] == 7
    assert not any("_" in name for name in settings)


@pytest.mark.parametrize("name", ["nonsense", "metrics_enabled", "ssl_nonsense"])
def test_a_setting_that_librdkafka_does_not_know_is_named(name):
    settings = source_settings(config(kafka={name: 1}))
    with pytest.raises(ConfigurationError, match=name.replace("_", ".")) as raised:
        TopicReader(settings, "orders", 1.0)
    assert "librdkafka" in raised.value.hint


def test_every_setting_that_has_another_name_is_one_of_librdkafka():
    names = ["fetch_max_wait_ms", "receive_buffer_bytes", "request_timeout_ms", "send_buffer_bytes"]
    TopicReader(source_settings(config(kafka=dict.fromkeys(names, 1000))), "orders", 1.0).close()


class Message:
    """A record as librdkafka has it."""

    def __init__(self, offset, value, headers=None):
        self._offset, self._value, self.given = offset, value, headers

    def offset(self):
        return self._offset

    def value(self):
        return self._value

    def headers(self):
        return self.given


OUT_OF_RANGE = PositionLostError("the broker does not have the offset")


class FakeReader:
    """Plays back answers of `poll`; an exception among them is raised."""

    def __init__(self):
        self.cluster, self.topic_id = "c1", ""
        self.polls = []
        self.held = (0, 10)
        self.end = None
        self.next = 0
        self.asked = self.counted = 0
        self.closed = False
        self.lost_connection = False
        self.clock = ManualClock()

    def partitions(self):
        self.counted += 1
        return {0}

    @property
    def origin(self):
        return KafkaOrigin(self.cluster, self.topic_id)

    def ask_origin(self):
        self.asked += 1
        if isinstance(self.held, Exception):
            raise self.held
        return self.origin

    def bounds(self, partition):
        return Bounds(*self.held)

    def seek(self, starts):
        [self.sought] = starts.values()
        self.lost_connection = False

    def take(self, limit, timeout):
        self.clock.time += max(timeout, 0.2)  # whoever asks also waits
        answer = self.polls.pop(0) if self.polls else []
        if isinstance(answer, Exception):
            raise answer
        if answer:
            self.next = answer[-1].offset() + 1
        return answer

    def highwater(self, partition):
        return self.end

    def position(self, partition):
        return self.next

    def close(self):
        self.closed = True


@pytest.fixture
def opened(monkeypatch):
    reader = FakeReader()
    monkeypatch.setattr(
        kafka_access, "reader_and_partitions", lambda *_, **__: (reader, reader.partitions())
    )
    source = DtsKafkaSource(config(), clock=reader.clock)
    source.open(KafkaPosition("orders", 0, 3))
    return source, reader


def records(*offsets):
    return [Message(o, None) for o in offsets]


def test_whoever_connects_asks_for_the_partitions_once(monkeypatch):
    reader = FakeReader()
    monkeypatch.setattr(kafka_reader, "TopicReader", lambda *_: reader)
    access = kafka_access.PartitionAccess(config(), 1.0, reader.clock)
    assert access.connect() is reader
    assert reader.counted == 1


def test_records_that_expire_while_they_are_read_are_lost(opened):
    source, reader = opened
    assert reader.sought == 2
    reader.polls = [records(2, 3, 4), OUT_OF_RANGE]
    assert [e.position.offset for e in source.read(10, 1)] == [4, 5]
    reader.held = (8, 10)
    with pytest.raises(PositionLostError, match="offset 5 has expired; the topic holds 8 to 10"):
        source.read(10, 1)


def test_a_topic_that_was_made_anew_is_a_lost_position(opened):
    source, reader = opened
    reader.held = (0, 2)
    with pytest.raises(PositionLostError, match="offset 3 does not exist"):
        source.open(KafkaPosition("orders", 0, 3))


def test_a_start_that_was_never_written_is_not_said_to_be_lost(opened):
    source, reader = opened
    reader.held = (2, 9)
    source._config = source._config.model_copy(update={"start": OffsetStart(offset=10)})
    with pytest.raises(
        PositionLostError, match="offset 10 does not exist yet; the topic holds 2 to 9"
    ) as raised:
        source.initial()
    assert raised.value.hint.startswith("Set `start` to an offset from 2 to 9")
    source._config = source._config.model_copy(update={"start": OffsetStart(offset=1)})
    with pytest.raises(PositionLostError, match="offset 1 has expired"):
        source.initial()


def test_a_silent_broker_is_asked_for_a_sign_of_life(opened):
    source, reader = opened
    reader.asked = 0
    assert source.read(10, 2.5) == ()
    assert reader.asked == 0
    assert source.read(10, 2.5) == ()
    assert reader.asked == 1
    reader.held = TransientError("no answer")
    with pytest.raises(TransientError, match="no answer"):
        source.read(10, 4)


def test_a_busy_broker_is_not_asked(opened):
    source, reader = opened
    reader.asked = 0
    for offset in range(3, 40):
        reader.polls = [[], records(offset)]
        assert len(source.read(10, 1)) == 1
    assert reader.asked == 0


def test_closed_means_closed(opened):
    source, reader = opened
    source.close()
    assert reader.closed
    with pytest.raises(TransientError):
        source.read(10, 0)
    source.close()


def valued(*values, first):
    return [Message(first + i, v) for i, v in enumerate(values)]


def give_header(records, number, *headers):
    """Let a record of an answer have these headers."""
    records[number].given = list(headers)


def test_the_record_before_the_place_is_read_again_and_compared(opened):
    source, reader = opened
    value = dts_record(sourceTimestamp=1_700_000_100)
    place = KafkaPosition("orders", 0, 3, record=crc32(value))
    reader.polls = [valued(value, b"", first=2)]
    source.open(place)
    assert reader.sought == 2
    assert [e.position.offset for e in source.read(10, 1)] == [4]
    source.open(place)
    reader.polls = [valued(dts_record(id=7), b"", first=2)]
    with pytest.raises(TransientError, match="another record stands before 3"):
        source.read(10, 1)
    source.open(place)
    reader.polls = [valued(value, first=3)]  # it is not there any more
    with pytest.raises(TransientError, match="another record stands before 3"):
        source.read(10, 1)


def test_a_connection_made_anew_ends_reading_before_what_came_over_it(opened):
    source, reader = opened
    reader.polls = [records(3)]
    assert len(source.read(10, 1)) == 1
    reader.lost_connection = True
    reader.polls = [records(4)]
    with pytest.raises(TransientError, match="the connection to the brokers was lost"):
        source.read(10, 1)
    reader.polls = [OUT_OF_RANGE]
    reader.held = (8, 10)
    with pytest.raises(TransientError, match="the connection to the brokers was lost"):
        source.read(10, 1)  # what those brokers have is not what was asked for


def test_another_topic_after_a_time_without_records_ends_reading(opened):
    source, reader = opened
    reader.topic_id = "t1"
    source.open(KafkaPosition("orders", 0, 3))
    reader.polls = [records(3), *[[]] * 6, records(4)]
    assert len(source.read(10, 1)) == 1
    reader.topic_id = "t2"
    with pytest.raises(TransientError, match="it was made anew"):
        source.read(10, 5)


def test_another_cluster_or_topic_ends_reading(opened):
    source, reader = opened
    reader.cluster = "c2"
    with pytest.raises(TransientError, match="cluster c1, and c2 answers now"):
        source.read(10, 5)
    known = KafkaOrigin("c1", "t1")
    with pytest.raises(TransientError, match="c2 answers now"):
        source.open(KafkaPosition("orders", 0, 3, origin=known))
    reader.cluster = "c1"
    reader.topic_id = "t2"
    with pytest.raises(TransientError, match="it was made anew"):
        source.open(KafkaPosition("orders", 0, 3, origin=known))


def test_an_offset_beyond_the_end_of_a_topic_made_anew_is_looked_up_again(opened):
    source, reader = opened
    reader.polls = [records(3), OUT_OF_RANGE]
    source.read(10, 1)
    reader.held = (0, 2)
    with pytest.raises(TransientError, match="the topic ends at 2"):
        source.read(10, 1)


def test_positions_know_enough_to_be_found_again(opened):
    source, reader = opened
    reader.topic_id = "t1"
    value = dts_record(sourceTimestamp=1_700_000_100)
    reader.polls = [valued(value, b"", value, first=3)]
    source.open(KafkaPosition("orders", 0, 3, 1_600_000_000))
    one, filler, _ = source.read(10, 1)
    known = KafkaOrigin("c1", "t1")
    assert one.position == KafkaPosition("orders", 0, 4, 1_700_000_100, crc32(value), known)
    # A filler has no time of its own.
    assert filler.position == KafkaPosition("orders", 0, 5, 1_700_000_100, 0, known)


def test_a_record_before_the_place_that_expires_in_the_last_moment_is_no_loss(opened):
    source, reader = opened
    reader.polls = [OUT_OF_RANGE]
    reader.held = (3, 10)
    with pytest.raises(TransientError, match="the record before 3 has expired"):
        source.read(10, 1)


def test_how_many_records_are_left_is_known_without_asking(opened):
    source, reader = opened
    assert source.behind() is None
    reader.end = 20
    reader.polls = [records(2, 3, 4)]
    source.read(10, 1)
    assert source.behind() == 15
    reader.asked = 0
    reader.next = 20  # what follows are records that nobody is shown
    source.read(10, 0.1)
    assert (source.behind(), reader.asked) == (0, 0)
    source.open(KafkaPosition("orders", 0, 3))
    assert source.behind() is None


# ---- records of a relay

TRANSACTIONS = [RelayTransaction(1, "mariadb-bin.000003", begin) for begin in (100, 200, 300)]


def relayed(*places, first):
    """Records with these places, as (number of the transaction, ordinal) or None."""
    value = dts_record(sourceTimestamp=1_700_000_100)
    records = valued(*[value] * len(places), first=first)
    for i, place in enumerate(places):
        if place is not None:
            header = RelayPlace(TRANSACTIONS[place[0]], place[1]).encoded()
            give_header(records, i, (HEADER, header))
    return records


def offsets(entries):
    return [entry.position.offset - 1 for entry in entries]


@pytest.mark.parametrize(
    ("places", "kept"),
    [
        ([(0, 0), (0, 1), (0, 2), (0, LAST), (1, 0), (1, 4)], [0, 1, 2, 3, 4, 5]),
        ([(0, 0), (0, 1), (0, 0), (0, 1), (0, 2)], [0, 1, 4]),
        ([(0, 0), (0, LAST), (1, 0), (0, 1), (0, LAST), (1, 1)], [0, 1, 2, 5]),
        ([(1, HEARTBEAT), (1, HEARTBEAT), (1, 0), (1, HEARTBEAT), (1, 1)], [0, 1, 2, 4]),
        ([(0, 0), None, (0, 0), (0, 1)], [0, 1, 3]),
        ([(0, 0), (2, 5), (1, LAST), (2, 5), (2, 6)], [0, 1, 4]),
    ],
)
def test_what_a_relay_wrote_twice_is_dropped(opened, places, kept):
    source, reader = opened
    source.open(KafkaPosition("orders", 0, 0))
    reader.polls = [relayed(*places, first=0)]
    assert offsets(source.read(10, 1)) == kept


def test_a_newer_generation_of_a_relay_goes_before_any_older_place(opened):
    source, reader = opened
    anew = RelayTransaction(2, "mariadb-bin.000001", 4)
    records = relayed((2, LAST), None, (1, 0), first=0)
    give_header(records, 1, ("x", b"1"), (HEADER, RelayPlace(anew, 0).encoded()))
    source.open(KafkaPosition("orders", 0, 0))
    reader.polls = [records]
    assert offsets(source.read(10, 1)) == [0, 1]


def test_the_record_before_the_place_tells_where_the_relay_stood(opened, caplog):
    source, reader = opened
    caplog.set_level("INFO")
    reader.polls = [relayed((1, LAST), (0, 5), (1, 0), first=2), relayed((1, LAST), first=5)]
    # All of it was there before, so nothing comes of it, not even an error or a position.
    assert source.read(10, 0.5) == ()
    reader.polls = [relayed((2, 0), first=6)]
    [entry] = source.read(10, 1)
    assert entry.position.offset == 7
    told = [r.getMessage() for r in caplog.records if "dropped" in r.getMessage()]
    assert told == [
        "orders[0]: 3 records from offset 3 on were dropped: a relay had written them before"
    ]


@pytest.mark.parametrize("header", [b"", b"2 1 f.1 4 - 0 0 - 7", b"1 1 f.1 4 - 0 0 - x", None])
def test_a_place_of_another_release_is_an_error_after_what_came_before(opened, header):
    source, reader = opened
    source.open(KafkaPosition("orders", 0, 0))
    records = relayed((0, 0), (0, 1), first=0)
    give_header(records, 1, (HEADER, header))
    reader.polls = [records]
    assert offsets(source.read(10, 1)) == [0]
    with pytest.raises(FatalError, match="not a relay's place"):
        source.read(10, 1)


def test_an_ordinal_that_is_no_number_is_an_error(opened):
    source, reader = opened
    source.open(KafkaPosition("orders", 0, 0))
    records = relayed((0, 0), (0, 1), first=0)
    give_header(records, 1, (HEADER, TRANSACTIONS[0].encoded() + b"two"))
    reader.polls = [records]
    source.read(10, 1)
    with pytest.raises(FatalError, match="not a relay's place"):
        source.read(10, 1)


# ---- runs of rows


def rows_of(*numbers, first, table="orders", operation="INSERT"):
    """Rows records at consecutive offsets."""
    return valued(
        *(
            row_record(
                operation,
                [("id", 8)],
                name=f"shop.{table}",
                id=number,
                after=[integer(number)],
                before=[integer(number)] if operation == "UPDATE" else None,
            )
            for number in numbers
        ),
        first=first,
    )


def together(*answers):
    """One answer made of several."""
    return [record for answer in answers for record in answer]


def test_rows_that_follow_each_other_are_one_entry(opened):
    source, reader = opened
    begin = {"first": 3}
    reader.polls = [
        together(
            valued(dts_record("BEGIN"), **begin),
            rows_of(1, 2, first=4),
            rows_of(3, first=6, operation="UPDATE"),
            rows_of(4, first=7, table="items"),
            rows_of(5, first=8),
            valued(dts_record("COMMIT"), first=9),
        )
    ]
    entries = source.read(10, 1)
    assert [(e.table, e.rows, e.position.offset) for e in entries] == [
        ("", 0, 4),
        ("orders", 3, 7),
        ("items", 1, 8),
        ("orders", 1, 9),
        ("", 0, 10),
    ]
    codec = DtsRowCodec()
    run = codec.records(entries[1].payload)
    assert [older for older, _ in run] == [2, 1, 0]
    values = [codec.decode(value, ()).images[0][1] for _, value in run]
    assert values == [(1,), (2,), (3,)]
    assert entries[1].position.record == crc32(run[-1][1])
    assert entries[1].timestamp == entries[1].position.timestamp == 1_700_000_000


def test_what_ends_before_a_full_load_ends_behind_its_last_row(opened):
    source, reader = opened
    rows, loaded = rows_of(1, 2, 3, first=3), rows_of(9, first=6, operation="INIT")
    for polls in ([together(rows, loaded)], [rows, loaded]):
        source.open(KafkaPosition("orders", 0, 3))
        reader.polls, entries = polls, []
        while reader.polls:
            entries += source.read(10, 1)
        places = [(e.kind, e.rows, e.position.offset) for e in entries]
        assert places == [
            (EntryKind.ROWS, 3, 6), (EntryKind.COMMIT, 0, 6), (EntryKind.ROWS, 1, 7)
        ]  # fmt: skip


def test_rows_of_a_table_whose_name_is_empty_are_not_lost(opened):
    source, reader = opened
    rows = valued(*(
        row_record("INSERT", [("id", 8)], name=".", id=n, after=[integer(n)]) for n in range(4)
    ), first=3)  # fmt: skip
    reader.polls = [rows[:2], rows[2:]]
    entries = [*source.read(10, 1), *source.read(10, 1)]
    assert [(e.schema, e.table, e.rows, e.position.offset) for e in entries] == [
        ("", "", 2, 5), ("", "", 2, 7)
    ]  # fmt: skip


def test_a_run_ends_where_it_is_long_enough(opened, monkeypatch):
    source, reader = opened
    monkeypatch.setattr(kafka_runs, "MOST_RECORDS", 3)
    reader.polls = [rows_of(*range(8), first=3)]
    assert [e.rows for e in source.read(10, 1)] == [3, 3, 2]
    monkeypatch.setattr(kafka_runs, "MOST_BYTES", 1)
    reader.polls = [rows_of(*range(3), first=11)]
    assert [e.rows for e in source.read(10, 1)] == [1, 1, 1]


def test_rows_before_what_is_no_record_are_given_out(opened):
    source, reader = opened
    reader.polls = [together(rows_of(1, 2, first=3), valued(b"\xff" * 200, first=5))]
    assert [(e.rows, e.position.offset) for e in source.read(10, 1)] == [(2, 5)]
    with pytest.raises(FatalError, match="not a DTS record"):
        source.read(10, 1)


def test_rows_before_a_place_that_nobody_understands_are_given_out(opened):
    source, reader = opened
    answer = rows_of(1, 2, 3, first=3)
    give_header(answer, 2, (HEADER, b"another release"))
    reader.polls = [answer]
    assert [(e.rows, e.position.offset) for e in source.read(10, 1)] == [(2, 5)]
    with pytest.raises(FatalError, match="not a relay's place"):
        source.read(10, 1)


def test_what_a_relay_repeats_is_not_in_a_run(opened):
    source, reader = opened
    answer = rows_of(1, 2, 1, 2, 3, first=3)
    for i, ordinal in enumerate((1, 2, 1, 2, 3)):
        give_header(answer, i, (HEADER, RelayPlace(TRANSACTIONS[0], ordinal).encoded()))
    reader.polls = [answer]
    (entry,) = source.read(10, 1)
    assert (entry.rows, entry.position.offset) == (3, 8)
    assert [older for older, _ in DtsRowCodec().records(entry.payload)] == [4, 3, 0]
