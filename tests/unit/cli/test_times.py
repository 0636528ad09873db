from datetime import UTC, datetime

import click
import pytest

from setl.cli.terminal.times import parse_time

NOW = 1_000_000.0


@pytest.mark.parametrize(
    ("text", "seconds"), [("+30s", 30), ("+5m", 300), ("+1.5h", 5400), ("+1d", 86400)]
)
def test_times_from_now(text, seconds):
    assert parse_time(text, NOW) == NOW + seconds


def test_times_with_and_without_a_zone():
    assert parse_time("2026-11-21T22:00:00+08:00", NOW) == parse_time("2026-11-21T14:00Z", NOW)
    local = parse_time("2026-11-21T22:00", NOW)
    assert datetime.fromtimestamp(local).isoformat() == "2026-11-21T22:00:00"  # noqa: DTZ006
    assert (
        parse_time("2026-11-21T14:00Z", NOW) == datetime(2026, 11, 21, 14, tzinfo=UTC).timestamp()
    )


@pytest.mark.parametrize("text", ["tomorrow", "5m", "+5", "", "2026-13-01T00:00"])
def test_what_is_no_time(text):
    with pytest.raises(click.UsageError, match="not a time"):
        parse_time(text, NOW)
