"""Delta tables in a channel file."""

import pytest

from setl.channel.reading import parse_channel
from setl.channel.relations.shared_targets import other_writers
from setl.channel.text.problems import ChannelFileError
from setl.channel.text.references import literal_secrets, without_secrets

from . import test_shared_targets as shards

S3 = {"aws_access_key_id": "key", "aws_secret_access_key": "hush", "aws_region": "eu"}


def channel(table=None, more=None, **options):
    source = {"type": "mysql", "host": "db", "user": "u"}
    pipeline = {
        "name": "p",
        "source": source,
        "target": {"type": "delta", **options},
        "tables": table or [{"from": "shop.orders"}],
        **(more or {}),
    }
    return {"channel": "c", "pipelines": [pipeline]}


def target(**options):
    return parse_channel(channel(**options)).pipelines[0].target


def test_a_folder_and_a_bucket():
    assert target(path="/lake").address == "/lake"
    assert "hush" not in repr(target(path="s3://lake/tables", storage_options=S3))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"path": "lake"}, "path: must be a path from the root, or begin with s3://"),
        ({"path": "gs://lake"}, "path: must be a path from the root, or begin with s3://"),
        ({"path": "/lake", "storage_options": S3}, "storage_options: mean nothing to a folder"),
        (
            {"path": "s3://x", "storage_options": {"aws_s3_allow_unsafe_rename": "true"}},
            "storage_options.aws_s3_allow_unsafe_rename: is none of",
        ),
        ({"path": "/lake", "vacuum": True}, "optimize: is required for `vacuum`"),
    ],
)
def test_what_is_wrong_is_said(options, error):
    with pytest.raises(ChannelFileError) as refused:
        target(**options)
    assert error in str(refused.value)


@pytest.mark.parametrize(
    ("tables", "more", "error"),
    [
        ([{"from": "a.b", "id": "{c}"}], {}, "tables[0].id: only means something for a target of"),
        ([{"from": "a.b", "zero_dates": "as_null"}], {}, "tables[0].zero_dates: only means"),
        ([{"from": "a.b"}], {"checkpoint": "target"}, "checkpoint: cannot be `target`"),
        ([{"from": "a.b", "to": "a.b.c"}], {}, "tables[0].to: "),
        (
            [{"from": "a.b", "group": "x", "to": "a.d"}, {"from": "a.c", "to": "a.d"}],
            {},
            "tables[1]: brings rows into a.d as tables[0] does",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_tables_are_as_those_of_a_server(tables, more, error):
    with pytest.raises(ChannelFileError) as refused:
        parse_channel(channel(tables, more, path="/lake"))
    assert error in str(refused.value)


def test_secrets_are_not_shown():
    raw = channel(path="s3://lake", storage_options=S3)
    assert "hush" not in str(without_secrets(raw))
    (warning,) = literal_secrets(raw)
    assert "aws_secret_access_key" in str(warning)


def test_folders_are_shared_as_servers_are():
    """A row that only the target has may be of the other shard: it is not to be deleted."""

    def lake(path):
        return {"type": "delta", "path": path}

    both = [
        shards.channel(
            "one", (shards.source("s1"), lake("/lake"), shards.entry("a.orders", "all.orders"))
        ),
        shards.channel(
            "two", (shards.source("s2"), lake("/lake/"), shards.entry("b.orders*", "all.orders*"))
        ),
        shards.channel(
            "three", (shards.source("s3"), lake("/Lake"), shards.entry("a.orders", "all.orders"))
        ),
        shards.channel(
            "four",
            (shards.source("s4"), shards.tables("/lake"), shards.entry("a.orders", "all.orders")),
        ),
    ]
    assert other_writers("one/p0", both) == {0: ("two/p0",)}
