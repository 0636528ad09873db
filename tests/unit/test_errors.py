"""Errors quote rows: what they say can be written anywhere, and has a form that quotes none."""

import copy
import json
import pickle

from setl.error_text import HIDDEN, READ_MORE, ErrorText, public
from setl.errors import DataError, SetlError, TransientError


def test_text_of_rows_is_made_printable_wherever_it_comes_in():
    error = DataError("bad '\ud800'\n\tat", hint="see \x1b[2J", key="\udcff").at(table="\x07")
    assert DataError("bad", key="\ud800:big5:A15A, 1").where["key"] == "0xA15A, 1"
    text = "bad '\\ud800'\n\tat (key \\udcff, table \\x07). see \\x1b[2J"
    assert str(error) == text
    assert error.args == (error.message,)
    json.dumps(str(error), ensure_ascii=False).encode()
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), type(again)) == (text, DataError)


def test_text_that_is_printable_stays_as_it_is():
    error = DataError("größer als 東京 \\x1b 👍", key="é")
    assert str(error) == "größer als 東京 \\x1b 👍 (key é)"


def test_anybody_may_read_the_kind_names_and_the_servers_number_alone():
    error = DataError("it is 'x'", hint="see x", channel="c", table="a.b", key="x", server="x:1")
    assert error.coded(1062).public == (
        "a data error: a row or value cannot be decoded or is refused (channel c, table a.b, the"
        f" server's code 1062); {READ_MORE}"
    )
    again = pickle.loads(pickle.dumps(error))
    assert (again.public, again.text.public, str(again)) == (error.public, error.public, str(error))
    assert TransientError("x").coded(0).public == f"{TransientError.kind}; {READ_MORE}"


def test_a_text_carries_its_public_form_through_copies_alone():
    text = ErrorText("all of it", "some")
    for same in (text, copy.deepcopy(text), pickle.loads(pickle.dumps(text))):
        assert (same, public(same)) == ("all of it", "some")
    for other in (str(text), f"{text}", text[:3], text.upper(), "plain"):
        assert public(other) == HIDDEN
    assert public("") == public(ErrorText("", "")) == ""


def test_every_kind_of_error_says_what_it_is():
    kinds: list[type[SetlError]] = [SetlError]
    for kind in kinds:
        kinds += kind.__subclasses__()
        assert kind.kind
    assert len({kind.kind for kind in kinds if kind.__module__ == "setl.errors"}) > 12
