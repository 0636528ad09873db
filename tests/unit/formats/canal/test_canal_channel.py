"""What a channel file may say of a topic of Canal."""

import pytest

from setl.channel.reading import parse_channel
from tests.unit.channel.test_standalone_formats import B, channel, problems, topic


def test_codecs():
    def codec(**more):
        return parse_channel(channel((topic("canal", **more), B))).pipelines[0].source.codec

    assert codec() == "canal"
    assert codec(time_zone="+08:00") == "canal +08:00"


@pytest.mark.parametrize(
    "zone", ["UTC", "+08:00", "Asia/Shanghai", "Etc/GMT+8", "America/Port-au-Prince"]
)
def test_time_zones(zone):
    assert parse_channel(channel((topic("canal", time_zone=zone), B)))


@pytest.mark.parametrize("zone", ["", "8", "+8", "+25:00", "../../etc/passwd", "Asia/", "a b"])
def test_what_is_no_time_zone(zone):
    found = problems(channel((topic("canal", time_zone=zone), B)))
    assert "time_zone" in "".join(found)
