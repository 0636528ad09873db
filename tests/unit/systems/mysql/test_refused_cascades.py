"""A table that comes while a pipeline runs, and a source that does not answer then."""

from types import SimpleNamespace
from typing import Any

import pytest

from setl.errors import TransientError
from setl.systems.mysql.preflight.foreign_keys import refuse_cascades


def test_a_source_that_does_not_answer_is_asked_again():
    def created_text(*_):
        raise TransientError("the server has gone away")

    server: Any = SimpleNamespace(variables={}, created_text=created_text)
    table: Any = SimpleNamespace(schema="shop", table="c", name="shop.c")
    with pytest.raises(TransientError, match="gone away"):
        refuse_cascades(server, table, ())
    refuse_cascades(server, table, ["foreign-key-action@shop.*"])
