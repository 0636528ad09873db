"""The Kafka cluster of a DTS subscription is replaced by another one at the same address."""

from __future__ import annotations

import time
from typing import Any

from arbiter.values import ChannelState
from setl_drills.checkers import check_set
from setl_drills.drill import Drill, DrillResult
from setl_drills.drill_run import DrillRun
from setl_drills.subscription import SITE, Subscription
from setl_drills.tables import from_kafka
from setl_drills.waiting import wait_for
from setl_drills.world import Needs, World

_ARRIVE_LIMIT = 90.0


def replace_kafka(world: World, seed: int) -> DrillResult:
    """Replace Kafka while a subscription is read: same address, same stream, other offsets."""
    with DrillRun(world, "kafka-replaced", seed) as run:
        draw = run.random
        channel = f"{run.channel}-kafka"
        subscription = Subscription(world.kafka.brokers, f"dts-{channel}", run.schema)
        subscription.start()
        try:
            definition = from_kafka(channel, run.schema, world.kafka.brokers, subscription.topic)
            stored = world.arbiter.channels.put(channel, definition)
            world.arbiter.channels.set_state(stored, ChannelState.START)
            wait_for("rows by Kafka", lambda: _found(run, "b"), _ARRIVE_LIMIT)
            run.play(draw.uniform(3.0, 6.0))
            run.say("Kafka is replaced by another cluster at its address")
            replaced = time.time()
            subscription.hold()
            # It reaches back a little, so that its offsets mean something else there.
            keep = draw.uniform(2.0, 3.0)
            world.replace_kafka(lambda brokers: subscription.fill(brokers, keep))
            subscription.move(world.kafka.brokers)
            before = max(subscription.committed)
            wait_for(
                "rows of the new cluster",
                lambda: max(_found(run, "b")) > before,
                _ARRIVE_LIMIT,
            )
            run.result.outages.append(time.time() - replaced)
            run.play(1.0)
            subscription.stop()
            _check(run, subscription)
            return run.finish()
        finally:
            subscription.stop()
            world.heal()
            world.remove_channel(channel)


def _check(run: DrillRun, subscription: Subscription) -> None:
    """What the subscription delivered is on site B, and by the other channel on site A too."""
    wanted = subscription.committed
    for site in ("b", "a"):
        last = max(wanted)
        wait_for(
            f"the subscription's last row on site {site}",
            lambda site=site, last=last: last in _found(run, site),
            _ARRIVE_LIMIT,
        )
        verdict = check_set(wanted, frozenset(), _found(run, site))
        run.result.lost += len(verdict.lost)
        run.result.unexpected += len(verdict.unexpected)
    run.result.evidence["rows by Kafka"] = len(wanted)


def _found(run: DrillRun, site: str) -> set[int]:
    with run.world.sites[site].connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM `{run.schema}`.entries WHERE site = %s", (SITE,))
        rows: Any = cursor.fetchall()
        return {int(row[0]) for row in rows}


DRILLS = (
    Drill(
        "kafka-replaced",
        "a DTS subscription's Kafka is replaced by another with other offsets; nothing is lost",
        "the moment, and how far the new cluster reaches back",
        replace_kafka,
        Needs(kafka=True),
    ),
)
