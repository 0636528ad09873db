"""Files that the documentation names exist, and so do names that docstrings lead to."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_FILE = re.compile(r"`((?:setl|arbiter|deploy|docs|schemas|sql|tests)/[\w./-]+)`")
_DOTTED = re.compile(r"(?<!`)`((?:setl|arbiter)(?:\.\w+)+)`(?!`)")


def module_of(words):
    """The longest beginning of a dotted name that is a module or a folder, and what is left."""
    for count in range(len(words), 0, -1):
        position = ROOT.joinpath(*words[:count])
        if position.with_suffix(".py").is_file() or position.is_dir():
            return position, words[count:]
    return None, words


def defined(module, name):
    text = module.with_suffix(".py").read_text() if module.with_suffix(".py").is_file() else ""
    word = re.escape(name)
    return bool(
        re.search(rf"^(?:class |def |async def )?{word}\b *[:=(\[]|^from .*\b{word}\b", text, re.M)
    )


@pytest.mark.parametrize(
    "page",
    [ROOT / "README.md", *sorted(ROOT.glob("docs/pages/**/*.md"))],
    ids=lambda page: page.stem,
)
def test_files_that_a_page_names_exist(page):
    named = _FILE.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("package", ["setl", "arbiter"])
def test_what_docstrings_lead_to_exists(package):
    wrong = []
    for file in sorted(ROOT.joinpath(package).rglob("*.py")):
        for dotted in _DOTTED.findall(file.read_text(encoding="utf-8")):
            module, rest = module_of(dotted.split("."))
            if module is None or (rest and not defined(module, rest[0])):
                wrong.append(f"{file.relative_to(ROOT)}: {dotted}")
    assert wrong == []
