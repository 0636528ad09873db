"""The reference of channel files is what the program makes of setl's JSON Schema."""

import runpy
from types import SimpleNamespace

import pytest

from setl.channel.json_schema import channel_schema

from .pages import PAGES, ROOT


@pytest.fixture(scope="module")
def program():
    return SimpleNamespace(**runpy.run_path(str(ROOT / "docs" / "channel_reference.py")))


@pytest.fixture(scope="module")
def page():
    return (PAGES / "channel-file.md").read_text(encoding="utf-8")


def test_the_page_is_up_to_date(program, page):
    made = program.page_text(page, channel_schema())
    assert page == made, "write it again with: python docs/channel_reference.py"


def test_every_field_has_a_row(program, page):
    schema = channel_schema()
    parts = {"": schema, **schema["$defs"]}
    fields = [
        field
        for name, part in parts.items()
        if name not in program._SAME_RULE
        for field in part.get("properties", {})
        if field not in program._inherited(name, schema["$defs"])
    ]
    assert len(fields) > 80
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    for name in set(fields):
        assert sum(row.startswith(f"| `{name}` |") for row in rows) >= fields.count(name), name


def test_fields_without_a_row_of_their_own_are_like_those_that_are_shown(program):
    """Those of alarm rules differ in the default of `for` alone, which the table of rules has."""
    definitions = channel_schema()["$defs"]
    names = [*program._SAME_RULE, *(n for n in definitions if program._inherited(n, definitions))]
    assert len(names) > 8
    for name in names:
        shown = definitions[program._base_of(name, definitions)]["properties"]
        fields = definitions[name]["properties"]
        for field, value in shown.items():
            rule = field == "for"
            expected = {**value, "default": fields[field]["default"]} if rule else value
            assert fields[field] == expected, f"{name}.{field}"
        assert name not in program._SAME_RULE or fields.keys() == shown.keys()


def test_every_object_has_a_title_of_its_own(program):
    schema = channel_schema()
    objects = {name for name, _ in program._objects(schema)}
    assert objects == set(program._TITLES)


def test_what_stands_around_the_part_stays(program):
    schema = channel_schema()
    made = program.page_text(f"before\n{program.BEGIN}\nold\n{program.END}\nafter\n", schema)
    assert made.startswith(f"before\n{program.BEGIN}\n")
    assert made.endswith(f"{program.END}\nafter\n")
    assert "\nold\n" not in made
    with pytest.raises(ValueError, match="lacks"):
        program.page_text("no part here", schema)
