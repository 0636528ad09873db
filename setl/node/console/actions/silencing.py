"""Silences of alarms, from the console: for some minutes, and their end."""

from __future__ import annotations

import secrets
from dataclasses import dataclass

from arbiter.arbiter import Arbiter
from arbiter.requests import Refused
from setl.alarms.alarm_state import Silence
from setl.alarms.asking import end_silence, silence, silences_at
from setl.alarms.rules import RULES
from setl.node.console.actions.context import ActionContext, Fields
from setl.node.stored import pipelines_of
from setl.operate import units

ALARMS = "alarms"
"""What is silenced, if it is no channel and no pipeline."""

MOST_MINUTES = 7 * 24 * 60


@dataclass(frozen=True, slots=True)
class SilenceRow:
    """A silence as text.

    Attributes:
        id: its name.
        about: what it covers; so with the rest, see `Silence`.
    """

    id: str
    about: str
    until: str
    by: str
    reason: str


def silence_rows(arbiter: Arbiter, now: float) -> tuple[SilenceRow, ...]:
    """The silences that have not ended, the one that ends first being the first."""
    return tuple(
        SilenceRow(each.id, each.about, units.moment(each.until), each.by, each.reason)
        for each in silences_at(arbiter, now)
    )


def begin(context: ActionContext, name: str, fields: Fields) -> str:
    """Tell nobody of alarms of a channel, a pipeline or everything for so many minutes."""
    channel, _, pipeline = ("" if name == ALARMS else name).partition("/")
    if channel:
        known = [ident.pipeline for ident in pipelines_of(context.arbiter.channels.one(channel))]
        if pipeline and pipeline not in known:
            raise Refused(f"{channel} has no pipeline {pipeline!r}")
    rule = fields.get("rule", "")
    if rule and rule not in RULES:
        raise Refused(f"there is no rule {rule!r}")
    now = context.requester.now
    until = now + 60 * _minutes(fields.get("minutes", ""))
    reason = fields.get("reason", "").strip()
    wanted = Silence(
        secrets.token_hex(3), until, channel, pipeline, rule, context.requester.by, reason
    )
    silence(context.arbiter, wanted, now)
    return (
        f"nothing is told of {wanted.about} until {units.moment(until)} UTC (silence {wanted.id})"
    )


def end(context: ActionContext, name: str, _: Fields) -> str:
    """End a silence, by its name."""
    ended = end_silence(context.arbiter, name, context.requester.now)
    if ended is None:
        raise Refused(f"there is no silence {name!r}")
    return f"the silence of {ended.about} is over"


def _minutes(text: str) -> int:
    minutes = int(text) if text.isascii() and text.isdigit() and len(text) <= 6 else 0
    if not 1 <= minutes <= MOST_MINUTES:
        raise Refused(f"a silence lasts from 1 to {MOST_MINUTES} minutes, not {text!r}")
    return minutes
