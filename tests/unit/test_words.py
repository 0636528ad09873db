"""Words that only their author understands do not come back; see the glossary of the docs."""

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PRIVATE = {
    "errand": "call, or request",
    "keeper": "monitor, tracker, or what it does",
    "lifeline": "state of a session",
    "misfortune": "problem",
    "seat": "pipeline controller",
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
    "undivided": "with a single writer",
    "mend": "fix",
    "mended": "fixed",
    "heir": "target node of a switchover",
    "candidacy": "pipeline controller",
    "candidacies": "supervisor, or pipeline controllers",
}
"""Not in code, comments, messages, SQL or docs."""

NAMES = {
    "anew": "again, reload, delete and insert",
    "dealt": "shuffled, distributed",
    "ears": "read_fd",
    "kept": "stored, cached, pending, retained",
    "lettered": "with dead letters",
    "mainstem": "leader lock",
    "mainstems": "leader locks",
    "mouth": "write_fd",
    "place": "position, index, location, log fields, report",
    "places": "positions, indexes, locations",
    "stir": "wake",
    "stretch": "insert partition, range",
    "stretches": "insert partitions, ranges",
    "tells": "shows, reports, has",
    "told": "reported, logged, sent, entry, status",
    "trouble": "problem, connect failure",
    "unsaid": "unlogged",
    "untold": "unlogged, or not reported",
}
"""Not as words of names in setl and arbiter; in prose some of them are plain English."""

ALLOWED = {"dead_lettered": "metric and figure: how many rows became dead letters"}
"""Names that have such a word for a reason."""


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


@pytest.fixture(scope="module")
def names(texts):
    """Path → words of the names in it, of the product's own code only."""
    return {
        path.as_posix(): {*words_of(path.stem)}.union(*map(words_of, names_in(text)))
        for path, text in texts.items()
        if path.suffix == ".py" and path.parts[0] in ("setl", "arbiter")
    }


def names_in(text):
    return {
        token.string
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME
    } - ALLOWED.keys()


def words_of(name):
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


@pytest.mark.parametrize("word", PRIVATE)
def test_private_words_do_not_come_back(texts, word):
    found = re.compile(rf"(?<![a-z]){word}s?(?![a-z])", re.IGNORECASE)
    files = [path for path, text in texts.items() if found.search(text)]
    assert not files, f"write {PRIVATE[word]}"


@pytest.mark.parametrize("word", NAMES)
def test_private_words_are_in_no_name(names, word):
    files = [path for path, words in names.items() if word in words]
    assert not files, f"write {NAMES[word]}"


def test_words_of_names():
    assert words_of("_LeaderLockOf_TLS2") == {"leader", "lock", "of", "tls"}
    assert names_in("a_b = 'told'  # told") == {"a_b"}


def test_what_is_allowed_is_there(texts):
    assert [name for name in ALLOWED if not any(name in text for text in texts.values())] == []
