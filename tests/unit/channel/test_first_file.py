"""The first file of a channel, as `setl init --from` writes it, is a channel file."""

import pytest

from setl.channel.fields.endpoints import MysqlSource, MysqlTarget
from setl.channel.first_file import (
    FirstFile,
    FirstTable,
    Remark,
    channel_name,
    fields_of,
    invented_target,
    password_variable,
    with_indexes,
    written,
)
from setl.channel.reading import read_channel_definition, resolve_and_parse
from setl.channel.server_url import read_server_url


def source(url="mysql://retl@db1/shop?insecure_login=true"):
    return read_server_url(url, "--from")


def file_of(*tables, target=None):
    of_source = fields_of(source(), "SHOP_SOURCE_PASSWORD")
    return FirstFile("shop", of_source, target or invented_target("shop"), tables)


ODD = ["orders", "no", "12", "a.b", "*", "[1-2]", "a: b", "#x", "ä ö", "'", '"', "a\\b", "${X}"]


def test_odd_names_are_read_as_they_are(tmp_path):
    file = file_of(*(FirstTable("shop", name, ("id", "new\nline")) for name in ODD))
    (path := tmp_path / "shop.yaml").write_text(written(file, {}), encoding="utf-8")
    definition = read_channel_definition(path)
    assert definition["pipelines"][0]["tables"] == file.definition["pipelines"][0]["tables"]
    parsed = resolve_and_parse(definition, dict.fromkeys(VARIABLES, "x"))
    (pipeline,) = parsed.pipelines
    assert isinstance(pipeline.source, MysqlSource)
    assert isinstance(pipeline.target, MysqlTarget)
    assert (pipeline.source.password, pipeline.source.insecure_login) == ("x", True)
    assert pipeline.target.host == "target.example.com"


VARIABLES = ("SHOP_SOURCE_PASSWORD", "SHOP_TARGET_PASSWORD")


def test_remarks_stand_where_they_belong():
    remarks = {
        "source": [Remark("error no-binlog@source: none", ("Turn it on",))],
        "shop.b": [Remark(f"warning x@shop.b: {'long ' * 40}\nend")],
    }
    text = written(file_of(FirstTable("shop", "a"), FirstTable("shop", "b", ("id",))), remarks)
    assert max(map(len, text.splitlines())) <= 100
    head, _, tables = text.partition("    tables:\n")
    of_source, _, of_target = head.partition("    target:")
    assert "# error no-binlog@source: none\n      #   → Turn it on\n" in of_source
    assert "error" not in of_target
    assert tables.index("shop.b  # key: id") < tables.index("# warning x@shop.b: long long")
    assert tables.endswith(" end\n")


def test_tables_that_no_file_can_map_are_comments():
    text = written(file_of(FirstTable("s", "a"), FirstTable("s", "b", left_out="is odd")), {})
    assert "      - from: s.a\n      # - from: s.b\n      # left out: is odd\n" in text


def test_tables_of_one_name_go_into_indexes_apart():
    tables = [FirstTable("A", "T"), FirstTable("b", "t"), FirstTable("b", "u")]
    assert [table.to for table in with_indexes(tables)] == ["a-t", "b-t", ""]


@pytest.mark.parametrize(
    ("url", "name", "variable"),
    [
        ("mysql://u@db1/shop", "shop", "SHOP_SOURCE_PASSWORD"),
        ("mysql://u@db1/a,b", "db1", "DB1_SOURCE_PASSWORD"),
        ("mysql://u@10.0.0.1", "10.0.0.1", "DB_10_0_0_1_SOURCE_PASSWORD"),
        ("mysql://u@db1/my shop!", "my-shop", "MY_SHOP_SOURCE_PASSWORD"),
        ("mysql://u@db1/setl", "setl", "DB_SETL_SOURCE_PASSWORD"),
    ],
)
def test_names(url, name, variable):
    assert channel_name(source(url)) == name
    assert password_variable(name, "source") == variable


def test_the_reference_of_the_url_is_taken():
    fields = fields_of(source("mysql://u:${PW}@db1/shop"), "OTHER")
    assert list(fields) == ["type", "host", "port", "user", "password"]
    assert fields["password"] == "${PW}"
