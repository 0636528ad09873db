"""The rules of a stored channel, which another release may have stored, or which may be damaged.

Whoever cannot read them alarms by the defaults: rules that nobody can read must not be the reason
for silence.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from setl.channel.fields.alarms import Alarms
from setl.channel.fields.standing_verification import StandingVerification, verification_of
from setl.channel.text.raw import Raw, items, part
from setl.channel.text.references import substitute_allowed
from setl.log import fields

_log = logging.getLogger(__name__)


def rules_of(
    definition: Mapping[str, Any], pipeline: str, environment: Mapping[str, str]
) -> tuple[Alarms, float | None]:
    """The rules of one pipeline, and seconds between two passes of its standing verification.

    Args:
        definition: the channel's, as it is stored.
        pipeline: the pipeline's name.
        environment: where references get their values from.

    Returns:
        The rules; and the time, None if the pipeline is not verified or nobody can read how.
    """
    channel = part(dict(definition))
    named = [part(each) for each in items(channel.get("pipelines"))]
    none: Raw = {}
    own = next((each for each in named if each.get("name") == pipeline), none)
    wanted = channel.get("alarms") if own.get("alarms") is None else own.get("alarms")
    given: dict[str, Any] = {
        "alarms": part(wanted),
        "verify": dict(verification_of(channel, own)),
    }
    resolved, _ = substitute_allowed(given, environment)
    try:
        rules = Alarms.model_validate(resolved["alarms"])
    except ValidationError:
        _log.warning(
            "rules of alarms cannot be read; the defaults count",
            extra=fields(channel=definition.get("channel"), pipeline=pipeline),
        )
        rules = Alarms()
    every: float | None = None
    if resolved["verify"]:
        try:
            every = StandingVerification.model_validate(resolved["verify"]).every
        except ValidationError:
            every = None
    return rules, every
