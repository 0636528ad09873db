import pytest

from tests.unit.cli.cluster_in_memory import Shop


@pytest.fixture
def shop():
    shop = Shop()
    yield shop
    shop.stop()
