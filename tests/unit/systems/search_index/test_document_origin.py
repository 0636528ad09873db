"""What is noted in an index of the ids of its documents."""

from typing import Any

import pytest

from setl.errors import ConfigurationError
from setl.model.document import DocumentOrigin
from setl.systems.search_index.errors import AnswerError
from setl.systems.search_index.load.document_origin import check_ids

BEFORE, NOW = DocumentOrigin("s.t -> i", "id (number)"), DocumentOrigin("s.t -> i", "no (number)")


class Index:
    """One index with documents, as a cluster keeps it."""

    def __init__(self, meta=None, documents=1):
        self.meta, self.documents, self.put = meta or {}, documents, 0
        self.refused: Any = None
        self.before_next_look: Any = None

    def mappings(self, index):
        if self.before_next_look is not None:
            self.before_next_look()
        return {index: {"mappings": {"_meta": self.meta}}}

    def put_mapping(self, index, _meta):
        assert index == "i"
        if self.refused:
            raise self.refused
        self.meta, self.put = _meta, self.put + 1

    def refresh(self, index):
        assert index == "i"

    def count(self, _):
        return {"count": self.documents}

    def check(self, ids, pipeline="c/p"):
        client: Any = self
        check_ids(client, "i", {"i": {"mappings": {"_meta": self.meta}}}, pipeline, ids)


def test_ids_are_noted_once_beside_what_others_keep_there():
    index = Index({"of": "somebody"})
    index.check(BEFORE)
    index.check(BEFORE)
    index.check(NOW, "c/another")
    index.check(DocumentOrigin("s.u -> i", "no (number)"))
    assert index.put == 3
    assert index.meta.pop("of") == "somebody"
    assert index.meta == {
        "setl_ids": {
            "c/p s.t -> i": "id (number)",
            "c/another s.t -> i": "no (number)",
            "c/p s.u -> i": "no (number)",
        }
    }


def test_documents_with_other_ids_are_refused_until_there_are_none():
    index = Index()
    index.check(BEFORE)
    with pytest.raises(ConfigurationError, match=r"of id \(number\), and .* of no \(number\)"):
        index.check(NOW)
    index.documents = 0
    index.check(NOW)
    index.documents = 1
    index.check(NOW)


def test_another_task_of_the_load_may_have_noted_them_and_written_documents():
    index = Index()
    index.check(BEFORE)

    def by_another():
        index.before_next_look = None
        index.documents = 0
        index.check(NOW)
        index.documents = 1

    index.before_next_look = by_another
    index.check(NOW)


def test_an_account_that_may_only_write_documents_goes_on():
    index = Index()
    index.refused = AnswerError(403, {"error": {"type": "security_exception"}})
    index.check(BEFORE)
    assert index.meta == {}


def test_the_bytes_of_a_value_count_where_both_tell_them():
    def of(text):
        return DocumentOrigin("s.t -> i", text)

    index = Index()
    index.check(of("a (binary), f (float)"))  # as an earlier release has noted it
    index.check(of("a (binary, 4 bytes), f (float, 4 bytes)"))
    index.check(of("a (binary), f (float)"))  # rows of a dead letter do not tell it
    index.check(of("a (binary), f (float, 4 bytes)"))
    assert index.put == 2
    for other in ("a (binary, 4 bytes), f (float, 8 bytes)", "a (binary, 8 bytes), f (float)"):
        with pytest.raises(ConfigurationError):
            index.check(of(other))
    index = Index()
    index.check(of("a (binary, 4 bytes)"))
    index.check(of("a (binary, any length)"))
    with pytest.raises(ConfigurationError):
        index.check(of("a (binary, 4 bytes)"))
