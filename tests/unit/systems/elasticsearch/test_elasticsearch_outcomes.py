import pytest

from setl.systems.elasticsearch.load.outcomes import Outcome, outcome_of, reason_of


@pytest.mark.parametrize(
    ("item", "outcome"),
    [
        ({"index": {"status": 200}}, Outcome.DONE),
        ({"index": {"status": 201}}, Outcome.DONE),
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
