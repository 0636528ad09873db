"""How much of the machine's memory the heap of a node's JVM takes.

A JVM that is told nothing begins with a 64th of the machine's memory as heap, and fills all of that
with garbage before it first collects, although Spark holds some 40 MiB there; its usual collector
takes 50 MiB more for itself. With a small heap and the serial collector the JVM of a node with
three pipelines takes 230 MiB instead of 320 to 470. After a burst a full collection gives memory
back; Spark asks for one every half an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

_SMALL: Final = "-Xms96m -XX:MaxHeapFreeRatio=50 -XX:MetaspaceSize=64m"
# What tasks and answers leave behind must die young: where it is moved to the old part, that is
# full every half a minute, and a full collection takes a tenth of a second on a busy machine.
_SERIAL: Final = "-XX:+UseSerialGC -Xmn48m -XX:SurvivorRatio=4"
_COLLECTOR: Final = re.compile(r"-XX:\+Use\w*GC\b")

VARIABLES: Final = ("JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS")
"""Variables from which a JVM takes options besides those of its command."""


def heap_options(chosen: Iterable[str]) -> str:
    """The options of a JVM's heap, beside those that somebody has `chosen`.

    A JVM that is told of two collectors does not start, so one that is chosen stays alone.
    """
    if any(_COLLECTOR.search(options) for options in chosen):
        return _SMALL
    return f"{_SERIAL} {_SMALL}"
