"""The alert rules are rules; each fires in its case, and only then."""

import re

import pytest
import yaml

from tests.monitoring import MONITORING, promtool

from .pages import every_series

RULES = MONITORING / "alerts.yml"
PAGES = MONITORING.parents[1] / "docs" / "pages"
FIRING = MONITORING / "alerts_test.yml"


def rules():
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def test_promtool_takes_rules_and_configuration():
    promtool("check", "rules", RULES)
    promtool("check", "config", MONITORING / "prometheus.yml")


def test_every_alert_fires_when_it_should_and_stays_silent_otherwise():
    promtool("test", "rules", FIRING)


def test_for_every_alert_there_is_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    fires, silent = set(), set()
    for case in yaml.safe_load(FIRING.read_text())["tests"]:
        for reported in case["alert_rule_test"]:
            (fires if reported.get("exp_alerts") else silent).add(reported["alertname"])
    assert fires == silent == set(rules())


@pytest.mark.parametrize("name", rules())
def test_an_alert_says_how_urgent_it_is_what_is_wrong_and_what_to_do(name):
    rule = rules()[name]
    assert name.startswith("Setl")
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert set(rule["annotations"]) == {"summary", "description"}


def test_the_page_lists_every_alert_with_its_severity():
    page = (PAGES / "monitoring.md").read_text(encoding="utf-8")
    listed = dict(re.findall(r"^\| `(Setl\w+)` \| (\w+) \|", page, re.M))
    assert listed == {name: rule["labels"]["severity"] for name, rule in rules().items()}


def test_rules_name_metrics_that_there_are():
    named = set(re.findall(r"\bsetl_\w+", RULES.read_text()))
    assert named
    assert named <= every_series()
