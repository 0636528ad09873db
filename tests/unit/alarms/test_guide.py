"""Where the documentation says what to do about an alarm."""

from setl.alarms.guide import SECTIONS, section_of
from setl.alarms.rules import RULES
from setl.node.console.pages.docs import section_title


def test_every_rule_has_a_section_that_there_is():
    assert set(SECTIONS) == set(RULES)
    assert [each for each in SECTIONS.values() if not section_title(each)] == []


def test_a_rule_of_another_release_has_none():
    """A node of a newer release may be the one that sends."""
    assert section_of("of tomorrow") == ""
