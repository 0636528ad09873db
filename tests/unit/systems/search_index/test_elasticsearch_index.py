"""What is asked of a cluster for an index, and what becomes of its answers."""

import pytest

from setl.errors import ConfigurationError
from setl.model.schema import Column, Kind
from setl.systems.search_index.errors import AnswerError
from setl.systems.search_index.load.index import ensure_index

COLUMNS = (Column("id", Kind.INTEGER), Column("g", Kind.GEOMETRY))


def refusal(status, type_, reason):
    return AnswerError(status, {"error": {"type": type_, "reason": reason}, "status": status})


class Indices:
    """One index as a cluster keeps it; notes what is asked."""

    def __init__(self, mapping=None, settings=None):
        self.mapping, self.set, self.asked = mapping, settings or {}, []
        self.refuses = {}

    def _ask(self, what, **content):
        self.asked.append((what, content))
        if what in self.refuses:
            raise self.refuses[what]

    def mappings(self, index):
        self._ask("get_mapping")
        if self.mapping is None:
            raise refusal(404, "index_not_found_exception", index)
        return {index: {"mappings": self.mapping}}

    def create(self, index):
        self.mapping = {}
        self._ask("create")

    def settings(self, index):
        return {index: {"settings": {"index": self.set}}}

    def put_settings(self, index, settings):
        self._ask("put_settings", **settings["index"])

    def put_mapping(self, index, properties):
        self._ask("put_mapping", **properties)


def asked(indices, **more):
    ensure_index(indices, "i", COLUMNS, **more)  # pyright: ignore[reportArgumentType]
    return indices.asked


LONG, BINARY = {"type": "long"}, {"type": "binary"}


def test_an_index_is_created_without_a_body_so_that_templates_count():
    assert asked(Indices()) == [
        ("get_mapping", {}),
        ("create", {}),
        ("get_mapping", {}),
        ("put_settings", {"gc_deletes": "1h"}),
        ("put_mapping", {"id": LONG, "g": BINARY}),
    ]


def test_what_a_crash_left_undone_is_done():
    assert asked(Indices({}))[-2:] == [
        ("put_settings", {"gc_deletes": "1h"}),
        ("put_mapping", {"id": LONG, "g": BINARY}),
    ]


def test_settings_of_others_are_left_alone():
    assert "put_settings" not in dict(asked(Indices({}, {"gc_deletes": "10s"})))
    mine = Indices({"properties": {"id": LONG}})
    assert asked(mine) == [("get_mapping", {}), ("put_mapping", {"g": BINARY})]
    assert asked(Indices({"properties": {"id": LONG, "g": BINARY}})) == [("get_mapping", {})]


@pytest.mark.parametrize("dynamic", [False, "strict"])
def test_an_index_that_takes_no_fields_is_asked_nothing(dynamic):
    assert asked(Indices({"dynamic": dynamic})) == [("get_mapping", {})]


def test_geometry_as_text_is_a_shape():
    shape = {"type": "geo_shape", "ignore_malformed": True}
    assert dict(asked(Indices(), geometry="wkt"))["put_mapping"]["g"] == shape


def test_somebody_else_was_faster():
    indices = Indices()
    indices.refuses["create"] = refusal(400, "resource_already_exists_exception", "i")
    assert asked(indices)[-1][0] == "put_mapping"
    indices = Indices({})
    indices.refuses["put_mapping"] = refusal(
        400, "illegal_argument_exception", "mapper [g] cannot be changed from type"
    )
    assert asked(indices)[-1][0] == "put_mapping"


def test_too_many_fields():
    indices = Indices({})
    indices.refuses["put_mapping"] = refusal(
        400,
        "illegal_argument_exception",
        "Limit of total fields [1000] has been exceeded",
    )
    with pytest.raises(ConfigurationError, match="Limit of total fields") as caught:
        asked(indices)
    assert "total_fields.limit" in caught.value.hint
