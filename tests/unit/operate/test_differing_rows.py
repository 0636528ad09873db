"""What differs, in words."""

from setl.operate.differing_rows import differing_rows

_ROW = {"target": "s.t", "differences": 3, "undecided": 1, "note": "n"}


def test_each_row_with_its_columns_and_then_how_many_more():
    columns = [
        {"name": "note", "source": "a'b\x1b[2J", "target": None},
        {"name": "n", "source": 1, "target": 2.5},
    ]
    samples = [
        {"key": "\x1b]0;", "what": "missing", "columns": []},
        {"key": "5", "what": "different", "columns": columns},
    ]
    row = {**_ROW, "sample_keys": samples, "undecided_keys": ["7\u202e"]}
    assert [tuple(one) for one in differing_rows(row)] == [
        ("\\x1b]0;: missing", ()),
        ("5: different", ('note: source "a\'b\\x1b[2J", target NULL', "n: source 1, target 2.5")),
        ("7\\u202e: undecided, it changed at every look", ()),
        ("and 1 more", ()),
        ("note: n", ()),
    ]


def test_nothing_of_what_is_equal_and_no_number_alone():
    assert not list(
        differing_rows({"target": "s.t", "differences": 0, "undecided": 0, "note": "n"})
    )
    assert [one.words for one in differing_rows({**_ROW, "sample_keys": []})] == ["note: n"]
