from itertools import product

import pytest

from setl.systems.mysql.preflight.same_numbers import may_be_same, numbers_of


def variables(step, offset):
    return {"auto_increment_increment": str(step), "auto_increment_offset": str(offset)}


@pytest.mark.parametrize("steps", list(product((1, 2, 3, 4, 6), repeat=2)))
def test_it_is_what_the_numbers_themselves_say(steps):
    first, second = steps
    for one, other in product(range(1, first + 1), range(1, second + 1)):
        given = set(range(one, 100, first)) & set(range(other, 100, second))
        sites = (numbers_of(variables(*site)) for site in ((first, one), (second, other)))
        assert may_be_same(*sites) is bool(given)


def test_a_server_that_says_nothing_counts_by_one():
    assert numbers_of({}) == (1, 1)
