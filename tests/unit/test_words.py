"""Words that only their author understands do not come back; see the glossary of the docs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRIVATE = {
    "errand": "call, or request",
    "keeper": "monitor, tracker, or what it does",
    "lifeline": "state of a session",
    "misfortune": "problem",
    "seat": "candidacy",
    "rehearsal": "drill, or run of a drill",
    "inquiries": "questions",
    "halved": "bisect",
    "halving": "bisection",
    "settled": "done, caught up, or what happened",
    "unsettled": "what has not happened yet: undecided, unflushed, still different",
    "settling": "what happens: rechecking, resolving, flushing",
    "befell": "occurred",
    "settle": "one of the words for settling",
    "desk": "list, or page",
    "discreet": "redacted",
}


@pytest.fixture(scope="module")
def texts():
    """Path → text of all that ships and of its documentation."""
    folders = [ROOT / name for name in ("setl", "arbiter", "deploy", "docs", "sql")]
    paths = [
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.suffix in (".py", ".md", ".sql")
    ]
    assert len(paths) > 300
    return {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in paths}


@pytest.mark.parametrize("word", PRIVATE)
def test_private_words_do_not_come_back(texts, word):
    found = re.compile(rf"(?<![a-z]){word}s?(?![a-z])", re.IGNORECASE)
    positions = [path for path, text in texts.items() if found.search(text)]
    assert not positions, f"write {PRIVATE[word]}"
