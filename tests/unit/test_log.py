"""Lines of a process are text or JSON, and nothing else is among them."""

import json
import logging
import subprocess
import sys

import pytest

from setl.log import TextFormatter, fields

PROCESS = """
import logging, sys, threading, warnings
from setl.errors import FatalError
from setl.log import configure, fields
from setl.cli.main import run
import setl.cli.nodes.process as process
configure(as_json={as_json})
logging.getLogger("setl").info("it works", extra=fields(table="shop.t", none=None))
warnings.warn("something is old")
logging.getLogger("kazoo").error("a library complains of what is handled above it")
thread = threading.Thread(target=lambda: 1 / 0, name="reader")
thread.start()
thread.join()
{end}
"""
BY_EXCEPTION = "raise RuntimeError('a defect')"
BY_ERROR = """
from setl.cli import main
def fails(**_):
    raise FatalError("the JVM has ended", hint="Start it again")
main.cli.main = fails
sys.exit(main.run(["node"]))
"""


def said(end, as_json=True):
    code = PROCESS.format(as_json=as_json, end=end)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode != 0
    assert not done.stdout
    return done.stderr.splitlines()


@pytest.mark.parametrize("end", [BY_EXCEPTION, BY_ERROR])
def test_every_line_is_a_json_object_to_the_last(end):
    lines = [json.loads(line) for line in said(end)]
    first, warning, thread, last = lines
    assert (first["message"], first["table"], first["level"]) == ("it works", "shop.t", "info")
    assert "none" not in first
    assert "something is old" in warning["message"]
    assert thread["thread"] == "reader"
    assert "ZeroDivisionError" in thread["traceback"]
    assert last["level"] == "critical"
    assert "a defect" in last.get("traceback", "") or "the JVM has ended" in last.get("error", "")


def test_text_is_for_people():
    lines = said(BY_ERROR, as_json=False)
    assert lines[0].endswith("INFO    it works table=shop.t")
    assert lines[-1].startswith(("Error: the JVM has ended", "Start it again"))


def test_a_value_neither_begins_a_line_nor_gives_a_terminal_commands():
    record = logging.LogRecord("setl", logging.WARNING, "", 0, "it failed", (), None)
    vars(record).update(fields(key="1\n2026-01-01T00:00:00Z", error="\x1b[2J", table="s.t"))
    line = TextFormatter().format(record)
    end = r'it failed key="1\n2026-01-01T00:00:00Z" error="\u001b[2J" table=s.t'
    assert line.endswith(end)
    assert line.isprintable()
