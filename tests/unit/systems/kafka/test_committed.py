"""What the client gives of a commit, with what may follow behind it."""

from types import SimpleNamespace

import pytest

from setl.errors import TransientError
from setl.systems.kafka.reader import TopicReader


class Found:
    """A commit as the client gives it; each look at the metadata may fail."""

    error, offset = None, 42

    def __init__(self, texts):
        self.texts = texts

    @property
    def metadata(self):
        return self.texts.pop(0).decode()


def committed(*texts):
    left = list(texts)
    reader = TopicReader.__new__(TopicReader)
    reader._topic = "t"
    reader._consumer = SimpleNamespace(committed=lambda *_, **__: [Found(left)])
    reader._asked = lambda question: question(1.0)
    return reader.committed(0)


def test_what_is_no_text_is_asked_for_again():
    assert committed(b"17\x9f", b"17\xff\xfe", b"17ok") == (42, "17ok")


def test_it_is_not_asked_for_ever():
    with pytest.raises(TransientError, match="cannot be read as text"):
        committed(*[b"\x9f"] * 100)
