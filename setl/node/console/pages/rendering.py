"""Turns values into HTML: templates with everything escaped, and files of the release."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined

from setl.node.console.pages.docs import link_of
from setl.node.console.pages.problems import TRY_AGAIN
from setl.operate import units
from setl.operate.action_log import outcome_of


def _texts(folder: Traversable, above: str = "") -> dict[str, str]:
    """Every template by its path below a folder."""
    found: dict[str, str] = {}
    for path in folder.iterdir():
        if path.is_dir():
            found |= _texts(path, f"{above}{path.name}/")
        elif path.name.endswith(".html"):
            found[f"{above}{path.name}"] = path.read_text(encoding="utf-8")
    return found


_ENVIRONMENT = Environment(
    # Read at once: an upgrade lays other files there while this process still runs.
    loader=DictLoader(_texts(resources.files("setl.node.console") / "templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_FILTERS: dict[str, Callable[..., str]] = {
    "moment": units.moment,
    "outcome": outcome_of,
    "duration": units.duration,
    "between": units.between,
    "count": units.count,
}
_ENVIRONMENT.filters.update(_FILTERS)  # pyright: ignore[reportUnknownMemberType]
_ENVIRONMENT.globals["docs_of"] = link_of  # pyright: ignore[reportUnknownMemberType]
_ENVIRONMENT.globals["TRY_AGAIN"] = TRY_AGAIN  # pyright: ignore[reportUnknownMemberType]

_AROUND: dict[str, str] = {"r-who": "who.html", "r-elsewhere": "elsewhere.html"}
"""Regions of every page: who is logged in, and which other nodes show the same."""

REGIONS: Mapping[str, dict[str, str]] = {
    "overview": {
        "r-problems": "overview/problems.html",
        "r-alarms": "overview/alarms.html",
        "r-channels": "overview/channels.html",
        "r-pipelines": "overview/pipelines.html",
        "r-nodes": "overview/nodes.html",
    },
    "pipeline": {
        "r-head": "pipeline/head.html",
        "r-actions": "pipeline/actions.html",
        "r-work": "pipeline/work.html",
        "r-history": "pipeline/history.html",
    },
    "channel": {
        "r-channel": "channel/head.html",
        "r-channel-actions": "channel/actions.html",
        "r-channel-file": "channel/file.html",
    },
    "node": {"r-node": "node/all.html"},
    "actions": {"r-log": "log.html"},
}
"""Pages that are kept up to date: ids of their regions, and the template of each."""


def page(template: str, values: Mapping[str, Any]) -> str:
    """A whole page."""
    return _ENVIRONMENT.get_template(template).render(values)


def regions(kind: str, values: Mapping[str, Any]) -> dict[str, str]:
    """The regions of a page that may have changed, by id."""
    return {
        ident: _ENVIRONMENT.get_template(template).render(values)
        for ident, template in (_AROUND | REGIONS[kind]).items()
    }
