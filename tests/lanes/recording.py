"""A plug-in for the pytest of a lane: picks its tests, and writes down what becomes of each.

One line of JSON a moment, so that much is known of a lane that is killed, too.
"""

import json
import signal

import pytest

from tests.families import pair_of
from tests.lanes.plan import lane_of


def pytest_addoption(parser):
    parser.addoption("--lane", help="run only what belongs to this lane")
    parser.addoption("--record", help="file for what becomes of each test")


def pytest_configure(config):
    # A shell's background jobs are born with it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config.pluginmanager.register(Recorder(config), "lane-recorder")


class Recorder:
    def __init__(self, config):
        self._config = config
        self._lane = config.getoption("--lane")
        self._file = open(config.getoption("--record"), "a", buffering=1)  # noqa: PTH123, SIM115

    def _write(self, **what):
        self._file.write(json.dumps(what) + "\n")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        others = [item for item in items if lane_of_item(item) != self._lane]
        if others:
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if lane_of_item(item) == self._lane]

    def pytest_collection_finish(self, session):
        self._write(kind="collected", count=len(session.items))

    def pytest_collectreport(self, report):
        if report.failed:
            self._write(
                kind="result", test=report.nodeid, what="error", reason=str(report.longrepr)
            )
        if report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self._write(kind="result", test=report.nodeid, what="skipped", reason=reason)

    def pytest_runtest_logstart(self, nodeid, location):
        self._write(kind="begun", test=nodeid)

    def pytest_runtest_logreport(self, report):
        what, *_ = self._config.hook.pytest_report_teststatus(report=report, config=self._config)
        reason = report.longrepr[2] if report.skipped and isinstance(report.longrepr, tuple) else ""
        self._write(
            kind="result", test=report.nodeid, what=what, seconds=report.duration, reason=reason
        )

    def pytest_runtest_logfinish(self, nodeid, location):
        self._write(kind="ended", test=nodeid)


def lane_of_item(item):
    values = getattr(getattr(item, "callspec", None), "params", {})
    path = item.nodeid.partition("::")[0]
    if path.startswith("tests/drills/") and "sites" in values:
        return lane_of(path, sites=values["sites"])
    return lane_of(path, pair_of(item))
