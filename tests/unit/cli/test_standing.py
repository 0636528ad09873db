"""What standing verification found, in commands."""

import json
from dataclasses import asdict

from arbiter.values import PipelineId
from setl.bulk.comparison import What
from setl.bulk.range_comparison import RangeOutcome
from setl.bulk.verdict import KeyDifference, TableVerdict
from setl.model.standing import Verification
from setl.run.verification import course
from setl.run.verification.course import Name
from setl.run.verification.figures import verification_figures
from setl.run.verification.store import StoredVerification

AB = PipelineId("shop", "ab")
ORDERS = Name("shop.orders", "copy.orders")


def after_a_pass(missing):
    state = course.begun(Verification(), (ORDERS,), 10, 1e9)
    keys = tuple(KeyDifference(str(n), What.MISSING) for n in range(missing))
    verdict = TableVerdict(*ORDERS, 10, 10, missing, 0, 0, sample_keys=keys)
    found = course.found_in(ORDERS, verdict, 1e9 + 5)
    return course.compared(state, RangeOutcome(None, 10, verdict), found, (ORDERS,), 1e9 + 5)


def keep(shop, state):
    node = shop.nodes.get("n9") or shop.node("n9")
    StoredVerification(node.arbiter, AB).store(state)


def printed(shop, capsys, *words, code=0):
    assert shop.run(*words) == code
    return " ".join(capsys.readouterr().out.split())


def test_the_last_result_is_shown_without_comparing(shop, capsys):
    text = printed(shop, capsys, "verify", "shop", "--pipeline", "ab", "--last", code=1)
    assert "no pass has begun" in text
    keep(shop, after_a_pass(2))
    text = printed(shop, capsys, "verify", "shop", "--pipeline", "ab", "--last", code=1)
    assert "shop.orders in copy.orders: 2 missing; such as 0 missing, 1 missing" in text
    (row,) = json.loads(
        printed(shop, capsys, "verify", "shop", "--pipeline", "ab", "--last", "-o", "json", code=1)
    )
    assert (row["differences"], row["tables"], row["last_pass"], row["rows"]) == (2, 1, 1, 10)
    keep(shop, after_a_pass(0))
    printed(shop, capsys, "verify", "shop", "--pipeline", "ab", "--last", code=0)


def test_what_differs_stands_in_the_list_and_everything_in_status(shop, capsys):
    reported = asdict(
        verification_figures(after_a_pass(2), 3600.0, 1e9 + 65, whole={"copy.x": "of a reason"})
    )
    shop.node("n1").leads(AB, verification=reported)
    text = printed(shop, capsys, "list")
    assert (
        "shop/ab is verified: 2 keys of 1 table differ, pass 1 is at 100 %, the last whole one"
        " ended 1 min ago"
    ) in text
    assert "verified 2 keys of 1 table differ" in printed(shop, capsys, "status", "shop")
    text = printed(shop, capsys, "status", "shop", "-v")
    assert "verification: age" in text
    assert "verification: last pass, rows" in text
    assert "in copy.orders: 2 missing; such as 0 missing, 1 missing" in text
    assert "compared as a whole each time: of a reason" in text


def test_equal_tables_need_no_line_in_the_list(shop, capsys):
    reported = asdict(verification_figures(after_a_pass(0), 3600.0, 1e9 + 65))
    shop.node("n1").leads(AB, verification=reported)
    assert "is verified" not in printed(shop, capsys, "list")
