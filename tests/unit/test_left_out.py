"""setl without the code of optional formats and systems: only channels that name them notice.

A process that cannot import their modules stands for a checkout from which somebody has deleted
them. That they do not need each other is an import rule.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from setl.channel.fields.endpoints import BUILT_IN_TARGETS
from setl.channel.fields.kafka_formats import STANDALONE
from setl.channel.file import KafkaSource
from setl.channel.reading import parse_channel
from setl.errors import ConfigurationError
from setl.operate.check import check_channel
from setl.relay.formats import serializer_maker
from setl.systems.kafka import source_system, target_system
from setl.systems.kafka.formats import header_reader
from setl.systems.registry import system_of
from setl.transform.work import codec_named
from tests.index_products import type_of
from tests.unit.channel.test_wrong_values import ENDS
from tests.unit.test_import_rules import part_of

CHECKOUT = Path(__file__).parents[2]
CORE = ("mysql", "kafka", "elasticsearch")
TARGETS = {type_of(form): form for form in BUILT_IN_TARGETS if type_of(form) not in CORE}
PROGRAM = (
    "import sys; _, packages, file = sys.argv;"
    "sys.modules.update(dict.fromkeys(packages.split(',')));"
    "from tests.unit.test_left_out import do_without; do_without(file)"
)


def packages():
    """What is deleted: packages and modules below `setl.systems`, `setl.codec` or `setl.relay`."""
    found = [form.system for form in TARGETS.values()]
    for form in STANDALONE.values():
        found += [form.headers, form.rows, form.serializer]
    return sorted({part_of(each) for each in found})


def test_all_else_works(tmp_path):
    for package in packages():
        path = CHECKOUT / package.replace(".", "/")
        assert path.is_dir() or path.with_suffix(".py").is_file()
    file = tmp_path / "channel.yaml"
    file.write_text(yaml.safe_dump(channel("mysql", {**ENDS["mysql"], "host": "b"})))
    folders = (CHECKOUT, CHECKOUT / "deploy", CHECKOUT / "tests" / "plugins")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(packages()), str(file)],
        cwd=CHECKOUT, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
        capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def channel(source, target):
    """A channel of one pipeline, its source of a type, or of a format."""
    kafka = {**ENDS["kafka"], "format": source, "brokers": ["127.0.0.1:1"]}
    given = {**ENDS["mysql"], "host": "127.0.0.1", "port": 1} if source == "mysql" else kafka
    pipeline = {"name": "p", "source": given, "target": target, "tables": [{"from": "s.t"}]}
    return {"channel": "c", "pipelines": [pipeline]}


def do_without(file):
    """What all other channels need, and what a channel is told that needs one of these."""
    from setl.cli.catalogue import entries
    from setl.cli.main import cli

    for entry in entries():
        assert CliRunner().invoke(cli, [entry.name, "--help"]).exit_code == 0, entry.name
    checked = CliRunner().invoke(cli, ["check", "--offline", file])
    assert checked.exit_code == 0, checked.output
    for form in BUILT_IN_TARGETS:
        if type_of(form) in CORE:
            assert system_of(form(**ENDS[type_of(form)]))
    assert header_reader(KafkaSource(**ENDS["kafka"])) is None
    assert serializer_maker("dts") is None
    for codec in ("binlog", "dts", "dts-physical"):
        assert codec_named(codec)
    for type_ in TARGETS:
        assert_refused(channel("mysql", ENDS[type_]))
    # Brokers would be waited for; what is checked here needs none.
    target_system.check_kafka_target = source_system.check_kafka_source = lambda *_, **__: None
    for format_ in STANDALONE:
        assert_refused(channel("mysql", {**ENDS["kafka"], "format": format_}))
        assert_refused(channel(format_, {**ENDS["mysql"], "host": "127.0.0.1", "port": 1}))
        with pytest.raises(ConfigurationError, match=f"lacks the module setl.*{format_}"):
            codec_named(format_)


def assert_refused(definition):
    """`setl check` refuses a channel that needs what is left out, and says so once."""
    errors = [f for f in check_channel(parse_channel(definition)) if f.level == "error"]
    lacking = [f for f in errors if "this installation lacks the module setl." in f.what]
    assert len(lacking) == 1, errors
    assert "Install" in str(lacking[0].hint)
