"""Definitions that tests change in one place."""

import copy
from typing import Any

ONE_WAY = {
    "channel": "shop",
    "pipelines": [
        {
            "name": "p",
            "source": {"type": "mysql", "host": "a", "user": "u"},
            "target": {"type": "mysql", "host": "b", "user": "u"},
            "tables": [{"from": "shop.orders"}],
        }
    ],
}

SEARCH = {"type": "elasticsearch", "hosts": ["http://es:9200"]}
DTS = {"type": "kafka", "brokers": ["k:9092"], "topic": "t"}

REMOVED = object()


def pipelines_of(file) -> Any:
    """The pipelines, of whatever kind their ends are."""
    return file.pipelines


def changed(path, value, definition=ONE_WAY):
    """A definition with one value changed, added or (REMOVED) removed; path as in messages."""
    result = copy.deepcopy(definition)
    steps = [
        int(s) if s.isdigit() else s for s in path.replace("[", ".").replace("]", "").split(".")
    ]
    position = result
    for step in steps[:-1]:
        position = position[step]
    if value is REMOVED:
        del position[steps[-1]]
    elif isinstance(position, list) and steps[-1] == len(position):
        position.append(value)
    else:
        position[steps[-1]] = value
    return result
