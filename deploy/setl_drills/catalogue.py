"""All drills, by name."""

from __future__ import annotations

from setl_drills.drill import Drill
from setl_drills.drills import (
    brokers,
    crashing,
    cutting,
    cutting_over,
    failing,
    freezing,
    handing_over,
    killing,
    loading,
    relaying,
    sessions,
    streams,
    two_way,
)

CATALOGUE: dict[str, Drill] = {
    drill.name: drill
    for drill in (
        *freezing.DRILLS,
        *sessions.DRILLS,
        *cutting.DRILLS,
        *streams.DRILLS,
        *brokers.DRILLS,
        *relaying.DRILLS,
        *handing_over.DRILLS,
        *killing.DRILLS,
        *two_way.DRILLS,
        *failing.DRILLS,
        *crashing.DRILLS,
        *loading.DRILLS,
        *cutting_over.DRILLS,
    )
}
"""In the order in which `run all` rehearses them: those that kill no node come first, since a node
that was killed has to start and to get warm before the next drill can judge an outage."""
