from setl.bulk.comparison import Difference, What, judge
from setl.bulk.rechecking import Rechecking


def difference(key, source, target):
    """Digests are written as letters; '' is no row."""
    sides = [frozenset(c.encode() for c in side) for side in (source, target)]
    what = judge(list(sides[0]), sorted(sides[1]), len(sides[1]))
    return Difference(key, what or What.DIFFERENT, None, *sides)


def keys(differences):
    return sorted(d.key for d in differences)


def test_a_key_that_agrees_when_read_again_is_no_difference():
    rechecking = Rechecking([difference("1", "a", ""), difference("2", "b", "c")])
    rechecking.look([difference("2", "b", "c")])
    assert keys(rechecking.pending) == ["2"]
    rechecking.look([])
    assert rechecking.still_different() == []


def test_a_key_that_keeps_differing_counts():
    rechecking = Rechecking([difference("1", "a", "")])
    for _ in range(3):
        rechecking.look([difference("1", "a", "")])
    assert keys(rechecking.still_different()) == ["1"]


def test_without_another_reading_everything_counts():
    assert keys(Rechecking([difference("1", "a", "b")]).still_different()) == ["1"]


def test_a_row_that_keeps_moving_is_followed_by_what_the_source_had_before():
    rechecking = Rechecking([difference("1", "b", "a")])
    rechecking.look([difference("1", "c", "b")])
    assert rechecking.still_different() == []


def test_a_target_that_stands_still_while_the_source_moves_counts():
    rechecking = Rechecking([difference("1", "b", "a")])
    rechecking.look([difference("1", "c", "a")])
    rechecking.look([difference("1", "d", "a")])
    assert keys(rechecking.still_different()) == ["1"]


def test_an_earlier_state_is_wrong_once_the_source_stands_still():
    rechecking = Rechecking([difference("1", "b", "a")])
    rechecking.look([difference("1", "c", "b")])
    rechecking.look([difference("1", "c", "b")])
    assert keys(rechecking.still_different()) == ["1"]


def test_a_delete_that_has_not_arrived():
    rechecking = Rechecking([difference("1", "b", "a")])
    rechecking.look([difference("1", "", "b")])
    assert rechecking.still_different() == []
    rechecking.look([difference("1", "", "b")])
    assert keys(rechecking.still_different()) == ["1"]


def test_an_insert_that_has_not_arrived():
    rechecking = Rechecking([difference("1", "", "a")])
    rechecking.look([difference("1", "b", "")])
    assert rechecking.still_different() == []


def test_keys_that_were_not_asked_for_are_not_taken_in():
    rechecking = Rechecking([difference("1", "a", "b")])
    rechecking.look([difference("2", "a", "b")])
    assert rechecking.pending == []


def test_judging_a_key():
    assert judge([b"a"], [b"a"], 1) is None
    assert judge([b"a", b"b"], [b"b"], 1) is None
    assert judge([b"a"], [b"b"], 1) is What.DIFFERENT
    assert judge([b"a"], [b"a"], 2) is What.DIFFERENT
    assert judge([b"a"], [], 0) is What.MISSING
    assert judge([], [b"a"], 1) is What.EXTRA
    assert judge([], [], 0) is None
