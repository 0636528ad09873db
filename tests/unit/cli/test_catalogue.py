"""Commands are found without being imported, and help and refusals import nothing heavy."""

import json
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from setl.cli.catalogue import entries
from setl.cli.main import cli

HEAVY = (
    "pyspark", "py4j", "pandas", "numpy", "pyarrow", "elasticsearch", "elastic_transport",
    "confluent_kafka", "kazoo", "pymysql", "starlette", "uvicorn",
)  # fmt: skip
# What the list of all commands does not need either.
FURTHER = ("pydantic", "yaml", "rich", "fastavro", "ssl")

PROGRAM = """
import contextlib, io, json, sys
from setl.cli.main import run

seen = {}
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = run(line)
    there = [name for name in json.loads(sys.argv[2]) if name in sys.modules]
    seen[" ".join(line)] = [status, there]
print(json.dumps(seen))
"""


@pytest.mark.parametrize("entry", list(entries()), ids=lambda entry: entry.name)
def test_the_catalogue_says_what_the_command_says_of_itself(entry):
    command = entry.load()
    assert isinstance(command, click.Command)
    assert command.name == entry.name
    assert command.get_short_help_str(200) == entry.short


def imported(*lines, names=HEAVY):
    """By line, its exit status and the modules that were there after it, one process for all."""
    command = [sys.executable, "-c", PROGRAM, json.dumps(lines), json.dumps(names)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=280)
    return json.loads(done.stdout)


def test_the_list_of_all_commands_imports_none_of_them():
    assert imported(["--help"], names=HEAVY + FURTHER) == {"--help": [0, []]}


def test_help_and_refusals_import_no_client_and_no_spark(tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text("channel: x\npipelines:\n  - name: a\n    source: {type: mysql, hots: a}\n")
    refused = [
        ["check", str(file)],
        ["apply", str(file)],
        ["verify", str(file)],
        ["check", "no-such-file.yaml"],
        ["show"],
        ["list", "--no-such-option"],
        ["no-such-command"],
        ["node", "--http", "nonsense"],
    ]
    helps = [[entry.name, "--help"] for entry in entries()]
    seen = imported(*helps, *refused)
    assert seen == {
        **{" ".join(line): [0, []] for line in helps},
        **{" ".join(line): [2, []] for line in refused},
    }


def test_what_a_refusal_by_the_cluster_has_no_use_for_is_not_imported():
    """Tables, YAML and the packages' metadata were a third of the time in which one was told."""
    code = (
        "import sys, setl.cli.main, setl.cli.handing_over, arbiter.zookeeper\n"
        "print(*sorted({'rich', 'yaml', 'importlib.metadata'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == ""


def test_a_command_that_is_nearly_right_is_named():
    done = CliRunner().invoke(cli, ["statsu"])
    assert done.exit_code == 2
    assert "status" in done.output
