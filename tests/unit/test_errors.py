"""Errors quote rows: what they say can be written and shown anywhere."""

import json
import pickle

from setl.errors import DataError


def test_text_of_rows_is_made_printable_wherever_it_comes_in():
    error = DataError("bad '\ud800'\n\tat", hint="see \x1b[2J", key="\udcff").at(table="\x07")
    assert DataError("bad", key="\ud800:A15A, 1").where["key"] == "0xA15A, 1"
    text = "bad '\\ud800'\n\tat (key \\udcff, table \\x07). see \\x1b[2J"
    assert str(error) == text
    assert error.args == (error.message,)
    json.dumps(str(error), ensure_ascii=False).encode()
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), type(again)) == (text, DataError)


def test_text_that_is_printable_stays_as_it_is():
    error = DataError("größer als 東京 \\x1b 👍", key="é")
    assert str(error) == "größer als 東京 \\x1b 👍 (key é)"
