"""Tables for people: with units, and readable on a narrow terminal."""

import io
import sys
from pathlib import Path

import pytest

from setl.cli import main
from setl.cli.channels import checking
from setl.cli.inspection.views import _PIPELINE_COLUMNS, _PIPELINE_MORE
from setl.cli.terminal import output
from setl.cli.terminal.literal_console import LiteralConsole
from setl.cli.terminal.output import print_rows, to_stderr
from setl.cli.terminal.progress import progress_line
from setl.errors import ConfigurationError

ROW = {
    "pipeline": "shop/orders-to-search",
    "channel_state": "START",
    "leader": "node-1",
    "leadership": 4711,
    "state": "running",
    "position": "mysql-bin.000123:1684548",
    "lag": 0.109,
    "rows_per_second": 98.2,
    "pending": 1,
}


@pytest.fixture
def terminal(monkeypatch):
    """What is printed on a terminal of some width."""

    def on(width):
        written = io.StringIO()
        console = LiteralConsole(file=written, width=width, force_terminal=False)
        monkeypatch.setattr(output, "console", lambda: console)
        return written

    return on


def show(rows, **more):
    print_rows(rows, _PIPELINE_COLUMNS, "table", dispensable=_PIPELINE_MORE, **more)


def test_a_wide_terminal_shows_every_column_with_units(terminal):
    written = terminal(200)
    show([ROW])
    said = written.getvalue()
    for word in ("109 ms", "4711", "98", "rows/s", "mysql-bin.000123:1684548", "pending"):
        assert word in said
    assert "wider" not in said


def test_a_narrow_terminal_shows_whole_words_of_fewer_columns(terminal):
    written = terminal(80)
    show([ROW])
    said = written.getvalue()
    assert all(len(line) <= 80 for line in said.splitlines())
    for word in ("shop/orders-to-search", "running", "109 ms", "node-1", "98"):
        assert word in said
    assert "mysql-bin" not in said
    assert "A wider terminal shows: position, behind" in said


def test_what_fits_nowhere_is_folded_and_not_cut(terminal):
    written = terminal(40)
    name = "shop." + "orders_of_customers_" * 3
    print_rows([{"table": name}], ("table",), "table")
    cells = [line.strip("│ ") for line in written.getvalue().splitlines()]
    assert name in "".join(cells)


def test_a_table_without_rows_is_a_sentence(terminal, capsys):
    written = terminal(80)
    show([], nothing="Nothing is there.")
    assert written.getvalue() == "Nothing is there.\n"
    print_rows([], ("error",), "json", nothing="Nothing is there.")
    assert capsys.readouterr().out == "[]\n"


@pytest.mark.parametrize("text", ["[red]x[/red] [/y] [1]", ":warning: a:on:b", "\\[a]"])
def test_what_others_wrote_is_printed_letter_by_letter(terminal, text):
    written = terminal(200)
    print_rows([{"key": text}], ["key"], "table", text)
    output.console().print(text)
    assert written.getvalue().count(text) == 3


def test_what_others_wrote_gives_a_terminal_no_commands(terminal, capsys):
    written, command = terminal(200), "\x1b[2J\x9b1A\u202e"
    print_rows([{"key": command}], ["key"], "table", command)
    output.console().print(command)
    to_stderr(command)
    shown = r"\x1b[2J\x9b1A\u202e"
    assert written.getvalue().count(shown) == 3
    assert capsys.readouterr().err == shown + "\n"


def test_nor_do_words_about_work_under_way():
    written, line = io.StringIO(), progress_line()
    line.console.file = written
    line.add_task("[/x] \x1b[2J :on:")
    line.console.print(line.get_renderable())
    assert r"[/x] \x1b[2J :on:" in written.getvalue()


def test_nothing_is_printed_by_another_console():
    commands = Path(output.__file__).parents[1]
    found = [path.name for path in commands.rglob("*.py") if "import Console" in path.read_text()]
    assert sorted(found) == ["checking.py", "literal_console.py", "output.py"]  # two for types only


ENCODINGS = pytest.mark.parametrize("encoding", ["ascii", "latin-1", "gbk"])


def in_encoding(monkeypatch, encoding):
    """Take standard output in an encoding that lacks some letters; gives what came of it."""
    out = io.TextIOWrapper(io.BytesIO(), encoding, write_through=True)
    monkeypatch.setattr(sys, "stdout", out)
    return lambda: out.buffer.getvalue().decode(encoding)


@ENCODINGS
def test_a_letter_that_the_terminal_lacks_ends_no_command(monkeypatch, encoding):
    printed = in_encoding(monkeypatch, encoding)
    with pytest.raises(UnicodeEncodeError):
        sys.stdout.write("\u2716")
    main.run(["--help"])
    print_rows([{"key": "é → ✖ 👍"}], ["key"], "table")
    assert r"\u2716 \U0001f44d" in printed().splitlines()[-2]


@ENCODINGS
def test_but_sql_is_printed_as_it_is_or_not_at_all(monkeypatch, encoding):
    printed = in_encoding(monkeypatch, encoding)
    main.run(["--help"])
    checking.print_exactly("ALTER TABLE t;")
    with pytest.raises(ConfigurationError, match="the script has letters") as entry:
        checking.print_exactly("ALTER TABLE `✖`;")
    assert "PYTHONIOENCODING" in entry.value.hint
    assert printed().splitlines()[-1] == "ALTER TABLE t;"
