"""What tests of comparisons have in common."""

import pytest

from tests.integration.compared_pair import Pair


@pytest.fixture
def pair(site_a, site_b, spark):
    pair = Pair(site_a, site_b, spark)
    yield pair
    pair.both(f"DROP DATABASE {pair.schema}")
    pair.source.close()
    pair.target.close()
