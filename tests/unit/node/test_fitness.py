"""What a node sees that it lacks, before it takes the lead."""

from arbiter.values import Channel, ChannelState
from setl.node.leading.fitness import Fitness
from tests.arbiter_in_memory import ManualClock


def channel(password="${DB1}", ca="", other_ca=""):
    tables = [{"from": "shop.t"}]
    ends = {"host": "db1", "user": "retl", "type": "mysql"}
    return Channel(
        "shop",
        ChannelState.START,
        {
            "channel": "shop",
            "pipelines": [
                {
                    "name": name,
                    "source": {**ends, "password": password},
                    "target": {**ends, "host": "db2", "ssl_ca": file},
                    "tables": tables,
                }
                for name, file in (("ab", ca), ("ac", other_ca))
            ],
        },
    )


def test_a_variable_that_is_not_set_is_named_with_its_position_until_it_is_there():
    environment, clock = {}, ManualClock()
    fitness = Fitness(environment, clock)
    why = fitness.missing_for(channel(), "ab")
    assert "the environment variable DB1 is not set" in why
    assert "pipelines[0].source.password" in why
    environment["DB1"] = "secret"
    clock.advance(10)
    assert fitness.missing_for(channel(), "ab") == ""
    assert "DB2" in fitness.missing_for(channel("${DB2}"), "ab"), "a changed channel is looked at"


def test_a_file_that_cannot_be_read_stores_its_pipeline_only(tmp_path):
    file = tmp_path / "ca.pem"
    clock = ManualClock()
    fitness = Fitness({"DB1": "x"}, clock)
    stored = channel(ca=str(file))
    assert fitness.missing_for(stored, "ab") == f"{file} cannot be read (target.ssl_ca)"
    assert fitness.missing_for(stored, "ac") == ""
    file.write_text("")
    clock.advance(10)
    assert fitness.missing_for(stored, "ab") == ""
