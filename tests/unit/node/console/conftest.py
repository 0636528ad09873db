import pytest

from tests.unit.node.console.browsing import Browser


@pytest.fixture
def browser(node):
    return Browser(node)


@pytest.fixture
def anna(node):
    anna = Browser(node)
    assert anna.log_in().code == 303
    return anna


@pytest.fixture
def password(node):
    node.environment["CONSOLE_TEST_PW"] = "hunter2"
