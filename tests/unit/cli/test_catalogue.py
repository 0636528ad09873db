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
# What only a channel file, a table for people or a server needs.
FURTHER = ("pydantic", "yaml", "rich", "fastavro", "ssl", "http.client")

PROGRAM = """
import contextlib, io, json, sys
from contextlib import contextmanager
from setl.cli.main import run
from tests.arbiter_in_memory import MemoryArbiter, MemoryCluster

@contextmanager
def connect(zookeeper, root):
    yield MemoryArbiter(MemoryCluster())

seen = {}
for line in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        status = run(line, connect)
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


def commands():
    """All commands, those of groups too, as they are typed."""
    for entry in entries():
        command = entry.load()
        yield [entry.name], command
        if isinstance(command, click.Group):
            for name, each in command.commands.items():
                yield [entry.name, name], each


def test_help_and_wrong_usage_import_nothing_that_only_the_work_needs():
    typed = list(commands())
    helps = [[*words, "--help"] for words, _ in typed]
    refused = [[*words, "--no-such-option"] for words, _ in typed]
    refused += [words for words, command in typed if any(each.required for each in command.params)]
    refused += [
        ["no-such-command"],
        ["check", "no-such-file.yaml"],
        ["plan", "no-such-file.yaml"],
        ["apply", "no-such-file.yaml"],
        ["list", "--output", "xml"],
        ["alarm", "silence", "--rule", "nonsense"],
        ["conflicts", "trim", "shop/a", "--keep", "-1"],
        ["cutover", "shop/a", "--timeout", "-1"],
        ["deadletter", "list", "-n", "0"],
        ["epoch", "raise", "--to", "-1"],
        ["load", "shop/a", "--where", "id = 1"],
        ["peek", "shop/a", "-n", "0"],
        ["resend", "shop/a", "--table", "s.t"],
        ["wait", "shop/a", "--timeout", "soon"],
    ]
    seen = imported(*helps, *refused, names=HEAVY + FURTHER)
    assert seen == {
        **{" ".join(line): [0, []] for line in helps},
        **{" ".join(line): [2, []] for line in refused},
    }


def test_refusals_of_a_file_or_of_a_configuration_import_no_client_and_no_spark(tmp_path):
    file = tmp_path / "wrong.yaml"
    file.write_text("channel: x\npipelines:\n  - name: a\n    source: {type: mysql, hots: a}\n")
    refused = [[name, str(file)] for name in ("check", "plan", "apply", "verify", "peek")]
    refused.append(["node", "--http", "nonsense"])
    assert imported(*refused) == {" ".join(line): [2, []] for line in refused}


def test_who_names_what_the_cluster_does_not_know_waits_for_no_channel_file():
    refused = [
        line.split()
        for line in (
            "status no", "history no", "verify no", "verify no --last", "wait no",
            "conflicts list no", "conflicts trim no --keep 1", "alarm silence no", "start no",
            "pause no", "resume no", "stop no", "remove no", "switchover no", "failover no",
            "cutover no", "signal rollback no", "position show no", "position reset no --to latest",
            "deadletter list no", "deadletter retry no --all", "deadletter drop no --all",
            "load no", "load list no", "load cancel no", "resend no --table a.b --where 1=1",
            "epoch show no", "show no", "list no", "peek no",
        )
    ]  # fmt: skip
    seen = imported(*refused, names=HEAVY + FURTHER)
    assert seen == {" ".join(line): [2, []] for line in refused}


def test_what_a_refusal_by_the_cluster_has_no_use_for_is_not_imported():
    """Tables, YAML and the packages' metadata were a third of the time in which one was told."""
    code = (
        "import sys, setl.cli.main, setl.cli.leadership.handing_over, arbiter.zookeeper\n"
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
