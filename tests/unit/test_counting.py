"""What puts a number before a noun says "1 row" and "2 rows"."""

import ast
import re
from pathlib import Path

import pytest

from setl.counting import count

ROOT = Path(__file__).parents[2]
NOUNS = (
    "alarms", "attempts", "batches", "changes", "conflicts", "differences", "documents",
    "executors", "heartbeats", "keys", "leaderships", "letters", "loads", "messages", "mistakes",
    "nodes", "notes", "pipelines", "receivers", "requests", "rows", "servers", "statements",
    "switchovers", "tables", "tasks", "times", "transactions",
)  # fmt: skip
_PLURAL = re.compile(rf"^ (?:(?!has |have )[a-z]+ )?(?:{'|'.join(NOUNS)})\b(?!/)")
_LIMIT = re.compile(r"_?[A-Z][A-Z_]+")  # a constant, which is more than one
_NAME = re.compile(r".*(name|nid|ident|target|back|join\(.*\))|me|kinds")  # before a verb


@pytest.mark.parametrize(
    ("number", "nouns", "words"),
    [
        (1, ("row",), "1 row"),
        (0, ("row",), "0 rows"),
        (12345, ("row",), "12,345 rows"),
        (1, ("was not begun", "were not begun"), "1 was not begun"),
        (2, ("batch is", "batches are"), "2 batches are"),
        (7, (), "7"),
        (None, ("row",), "–"),  # noqa: RUF001 - a dash in its own right
    ],
)
def test_counts(number, nouns, words):
    assert count(number, *nouns) == words


def plurals(text):
    """Numbers that stand before a noun in the plural, whatever they are."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, words in zip(node.values, node.values[1:], strict=False):
            if not (isinstance(value, ast.FormattedValue) and isinstance(words, ast.Constant)):
                continue
            number = ast.unparse(value.value)
            counts = not (_LIMIT.fullmatch(number) or _NAME.fullmatch(number))
            if counts and _PLURAL.match(str(words.value)):
                yield node.lineno, number, str(words.value)


_NEVER_ONE = {
    ("arbiter/session/connect_failures.py", "servers"),
    ("setl/systems/mysql/preflight/load_limits.py", "least"),
    ("setl/codec/dts/header_reader.py", "self._rows"),
    ("setl/systems/kafka/by_time.py", "rows"),
    ("setl/systems/mysql/preflight/schema_changes.py", "len(names)"),
    ("setl/systems/mysql/preflight/source_tables.py", "matches"),
    ("setl/operate/questions.py", "moves"),
    ("setl/alarms/zookeeper_facts.py", "self.servers"),
}


def test_no_number_stands_before_a_fixed_plural():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {{{number}}}{words[:40]}"
        for folder in ("setl", "arbiter")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, number, words in plurals(path.read_text(encoding="utf-8"))
        if (str(path.relative_to(ROOT)), number) not in _NEVER_ONE
    ]
    assert found == [], "use setl.counting.count"


def test_nor_in_a_template():
    shown = re.compile(rf"\}}\}} (?:[a-z]+ )?(?:{'|'.join(NOUNS)})\b")
    templates = sorted((ROOT / "setl/node/console/templates").rglob("*.html"))
    found = [f"{path.name}: {m[0]}" for path in templates for m in shown.finditer(path.read_text())]
    assert templates
    assert found == []
