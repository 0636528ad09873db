import pytest

from setl.errors import FatalError
from setl.load.deadletters.storing import Faults
from setl.model.change import TargetChanges
from setl.model.schema import Column, Kind
from setl.systems.search_index.load.faults import Origin, put_aside
from setl.systems.search_index.load.outcomes import Outcome, outcome_of, reason_of


@pytest.mark.parametrize(
    ("item", "outcome"),
    [
        ({"index": {"status": 200}}, Outcome.DONE),
        ({"index": {"status": 201}}, Outcome.DONE),
        ({"index": {"status": 201, "result": "created"}}, Outcome.DONE),
        ({"index": {"status": 200, "result": "noop"}}, Outcome.REFUSED),
        ({"index": {"status": 201, "failure_store": "used"}}, Outcome.REFUSED),
        ({"index": {"status": 201, "failure_store": "not_enabled"}}, Outcome.DONE),
        ({"index": {"status": 409, "error": {"type": "version_conflict"}}}, Outcome.STALE),
        ({"delete": {"status": 404}}, Outcome.DONE),
        ({"delete": {"status": 404, "result": "not_found"}}, Outcome.DONE),
        (
            {"delete": {"status": 404, "error": {"type": "index_not_found_exception"}}},
            Outcome.NO_INDEX,
        ),
        (
            {"index": {"status": 404, "error": {"type": "index_not_found_exception"}}},
            Outcome.NO_INDEX,
        ),
        ({"index": {"status": 404, "error": {"type": "alias_gone"}}}, Outcome.REFUSED),
        ({"delete": {"status": 404, "error": {"type": "shard_gone"}}}, Outcome.REFUSED),
        ({"index": {"status": 429}}, Outcome.AGAIN),
        ({"index": {"status": 503}}, Outcome.AGAIN),
        ({"delete": {"status": 500}}, Outcome.AGAIN),
        ({"index": {"status": 403}}, Outcome.FORBIDDEN),
        ({"index": {"status": 400}}, Outcome.REFUSED),
        ({"index": {"status": 413}}, Outcome.REFUSED),
    ],
)
def test_every_status_has_an_outcome(item, outcome):
    assert outcome_of(item) is outcome


def test_the_reason_goes_down_to_its_cause():
    error = {
        "type": "document_parsing_exception",
        "reason": "failed to parse field [d]",
        "caused_by": {"type": "x", "reason": "no number", "caused_by": {"reason": "'abc'"}},
    }
    assert reason_of({"index": {"status": 400, "error": error}}) == (
        "[400] document_parsing_exception: failed to parse field [d]: no number: 'abc'"
    )
    assert reason_of({"index": {"status": 400, "error": "just text"}}) == "[400] just text"
    assert reason_of({"index": {"status": 503}}) == "[503]"
    assert "dropped" in reason_of({"index": {"status": 200, "result": "noop"}})
    assert "failure store" in reason_of({"index": {"status": 201, "failure_store": "used"}})


NO_STREAM = "only write ops with an op_type of create are allowed in data streams"


@pytest.mark.parametrize(
    ("kind", "reason", "of_the_row"),
    [
        ("document_parsing_exception", "failed to parse field [d]", True),
        ("illegal_argument_exception", "Document contains at least one immense term", True),
        ("illegal_argument_exception", "no write index is defined for alias [items]. The", False),
        ("illegal_argument_exception", NO_STREAM, False),
        ("illegal_argument_exception", "Limit of total fields [1000] has been exceeded", False),
        ("index_closed_exception", "closed", False),
    ],
)  # fmt: skip
def test_what_the_index_is_to_blame_for_puts_no_row_aside(kind, reason, of_the_row):
    part = TargetChanges(("", "items"), (Column("id", Kind.INTEGER),), (0,), [(1,)], [], [5], [])
    item = {"index": {"status": 400, "error": {"type": kind, "reason": reason}}}
    faults = Faults((), 10)
    if of_the_row:
        put_aside([(0, item)], [Origin(part, 0, delete=False)], faults)
        assert [row.version for row in faults.rows] == [5]
        return
    with pytest.raises(FatalError, match="because of their index"):
        put_aside([(0, item)], [Origin(part, 0, delete=False)], faults)
