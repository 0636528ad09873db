"""The dashboard is one that Grafana can read: whole, without overlaps, asking for what there is."""

import json
import re
from itertools import combinations

import pytest
import yaml

from tests.monitoring import MONITORING, promtool

from .pages import every_series

GRAFANA = MONITORING / "grafana"
DASHBOARD = json.loads((GRAFANA / "dashboards" / "setl.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
BUILT_IN = {"__rate_interval", "__interval"}


def queries():
    for panel in PANELS:
        for target in panel["targets"]:
            yield panel, target
    for annotation in DASHBOARD["annotations"]["list"]:
        yield annotation, annotation


def overlap(one, other):
    a, b = one["gridPos"], other["gridPos"]
    apart = (
        a["x"] + a["w"] <= b["x"]
        or b["x"] + b["w"] <= a["x"]
        or a["y"] + a["h"] <= b["y"]
        or b["y"] + b["h"] <= a["y"]
    )
    return not apart


def test_panels_have_positions_and_numbers_of_their_own():
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    assert all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in DASHBOARD["panels"])
    assert not [(a["title"], b["title"]) for a, b in combinations(PANELS, 2) if overlap(a, b)]


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_and_in_which_unit(panel):
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    letters = [target["refId"] for target in panel["targets"]]
    assert letters == sorted(set(letters))
    assert all(target["legendFormat"] for target in panel["targets"])


def test_queries_name_metrics_and_variables_that_there_are():
    series = every_series()
    for position, query in queries():
        where = position.get("title") or position["name"]
        assert set(re.findall(r"\bsetl_\w+", query["expr"])) <= series, where
        assert set(re.findall(r"\$(\w+)", query["expr"])) <= VARIABLES | BUILT_IN, where
        assert query["datasource"]["uid"] == "${datasource}", where


def test_queries_are_read_by_prometheus(tmp_path):
    rules = [
        {"record": f"query{n}", "expr": ready(query["expr"])}
        for n, (_, query) in enumerate(queries())
    ]
    assert len(rules) > 30
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    promtool("check", "rules", file)


def ready(expr):
    for name in BUILT_IN:
        expr = expr.replace(f"${name}", "1m")
    return re.sub(r"\$\w+", ".*", expr)


def test_grafana_finds_it_where_it_is_reported_to_look():
    provider = yaml.safe_load((GRAFANA / "provisioning/dashboards/setl.yml").read_text())
    assert provider["providers"][0]["options"]["path"].endswith("/grafana/dashboards")
    source = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())
    assert source["datasources"][0]["type"] == "prometheus"
