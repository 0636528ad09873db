import pytest

from setl.operate.units import UNKNOWN, count, duration, figure, moment, percent, rate, size


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, UNKNOWN), (float("inf"), UNKNOWN), (0, "0 s"), (0.0001, "0 s"), (0.044, "44 ms"),
        (0.34, "340 ms"), (1.0, "1 s"), (4.21, "4.2 s"), (9.96, "10 s"), (59.4, "59 s"),
        (59.6, "1 min"), (75, "1 min 15 s"), (3600, "1 h"), (12_000, "3 h 20 min"),
        (187_200, "2 d 4 h"), (86_400 * 400, "400 d"),
    ],
)  # fmt: skip
def test_durations(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (None, UNKNOWN), (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1500, "1.5 KiB"),
        (128 << 20, "128 MiB"), (1_300_000_000, "1.2 GiB"), (5 << 40, "5 TiB"),
    ],
)  # fmt: skip
def test_sizes(number, text):
    assert size(number) == text


def test_rates():
    assert (rate(0, "rows"), rate(0.25, "rows")) == ("0 rows/s", "0.25 rows/s")
    assert rate(12_345.6, "rows") == "12,346 rows/s"
    assert [rate(n) for n in (None, 0, 0.5, 1234.5)] == [UNKNOWN, "0", "0.5", "1,234"]


def test_counts():
    assert count(1, "row", "rows") == "1 row"
    assert count(1234567, "row", "rows") == "1,234,567 rows"
    assert [count(n) for n in (None, 1234567)] == [UNKNOWN, "1,234,567"]


def test_shares_and_moments():
    assert [percent(1, 3), percent(1, 0)] == ["33 %", UNKNOWN]
    assert [moment(86_400.4), moment(None)] == ["1970-01-02 00:00:00", UNKNOWN]


def test_a_figure_gets_the_unit_of_its_name():
    assert figure("buffered_bytes", 2048) == "2 KiB"
    assert figure("bytes_per_second", 2048) == "2 KiB/s"
    assert figure("rows_per_second", 20.0) == "20 rows/s"
    assert figure("lag", 0.25) == "250 ms"
    assert figure("stage_seconds", 61.0) == "1 min 1 s"
    assert figure("batches", 2048) == 2048
    assert figure("lag", None) is None
    assert figure("warm", True) is True
