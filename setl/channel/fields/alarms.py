"""When a pipeline raises an alarm: limits, and for how long they must be passed."""

from __future__ import annotations

from pydantic import Field

from setl.channel.fields.checks import Duration, Patience
from setl.channel.text.strict_model import StrictModel

_FOR = "How long it must be so before the alarm is raised: `2m`, `1h`, or seconds."
_ENABLED = "Whether the rule counts."


class AlarmRule(StrictModel):
    """A rule whose alarm is raised at once, unless `for` says otherwise."""

    enabled: bool = Field(default=True, description=_ENABLED)
    for_: Patience = Field(default=0.0, alias="for", description=_FOR)


class LagAlarm(AlarmRule):
    """The target is behind."""

    above: Duration = Field(default=300.0, description="Lag above which it holds.")
    for_: Patience = Field(default=120.0, alias="for", description=_FOR)


class MinuteAlarm(AlarmRule):
    """A rule that waits for a minute."""

    for_: Patience = Field(default=60.0, alias="for", description=_FOR)


class FiveMinuteAlarm(AlarmRule):
    """A rule that waits for five minutes."""

    for_: Patience = Field(default=300.0, alias="for", description=_FOR)


class TenMinuteAlarm(AlarmRule):
    """A rule that waits for ten minutes."""

    for_: Patience = Field(default=600.0, alias="for", description=_FOR)


class CountAlarm(AlarmRule):
    """More of something than there may be."""

    above: int = Field(default=0, ge=0, description="Number above which it holds.")


class VerificationAgeAlarm(AlarmRule):
    """No whole pass of standing verification has ended for long."""

    passes: float = Field(
        default=3.0,
        ge=1,
        le=1000,
        description="How many times `every` of `verify` the last whole pass may be old.",
    )


class PositionAlarm(AlarmRule):
    """The source will soon remove what was not applied yet."""

    before: Duration = Field(
        default=12 * 3600.0,
        description="How long before the source may remove it the alarm is raised.",
    )
    retention: Duration | None = Field(
        default=None,
        description="How long the source keeps its stream, if it does not tell, or removes it"
        " earlier than it tells. Not given: as the source tells.",
    )


class ExpiryAlarm(AlarmRule):
    """A certificate or a password expires."""

    before: Duration | None = Field(
        default=None,
        description="How long before that the alarm is raised. Not given: 14 days, or a sixth of"
        " its life if that is less.",
    )


class TargetDiskAlarm(AlarmRule):
    """A disk of the target is nearly full."""

    free_percent: float | None = Field(
        default=None,
        gt=0,
        lt=100,
        description="Percent of the disk that must be free. Not given: what the server itself says"
        " that it needs, or 10 if it says nothing.",
    )
    for_: Patience = Field(default=60.0, alias="for", description=_FOR)


class Restart(StrictModel):
    """Whether a pipeline that stopped with an error is started again without anybody."""

    times: int = Field(default=3, ge=1, le=60, description="How often within an hour, at most.")
    after: Duration = Field(
        default=60.0, description="How long after the alarm, and after the restart before."
    )


class Alarms(StrictModel):
    """The rules; each has defaults that are right for most."""

    lag: LagAlarm = Field(default_factory=LagAlarm, description="The target is behind the source.")
    stopped: AlarmRule = Field(
        default_factory=AlarmRule, description="The pipeline stopped with an error."
    )
    no_leader: MinuteAlarm = Field(
        default_factory=MinuteAlarm, description="The channel is started, and no node leads."
    )
    no_answer: FiveMinuteAlarm = Field(
        default_factory=FiveMinuteAlarm,
        description="The leader does not answer, so that nothing is known of the pipeline.",
    )
    no_progress: FiveMinuteAlarm = Field(
        default_factory=FiveMinuteAlarm,
        description="It stands still, or tries again and again what fails.",
    )
    no_standby: TenMinuteAlarm = Field(
        default_factory=TenMinuteAlarm, description="No other node could take over."
    )
    dead_letters: CountAlarm = Field(
        default_factory=CountAlarm, description="Faulty rows were put aside and wait."
    )
    echoes: CountAlarm = Field(
        default_factory=CountAlarm,
        description="Transactions of the channel came back and were not dropped.",
    )
    verification_differences: CountAlarm = Field(
        default_factory=CountAlarm,
        description="Standing verification has found keys that differ.",
    )
    verification_age: VerificationAgeAlarm = Field(
        default_factory=VerificationAgeAlarm,
        description="Standing verification has not ended a pass for long.",
    )
    position: PositionAlarm = Field(
        default_factory=PositionAlarm,
        description="The source will soon remove what was not applied yet, or has; also while the"
        " channel is paused or stopped.",
    )
    expiry: ExpiryAlarm = Field(
        default_factory=ExpiryAlarm,
        description="A server's certificate or the account's password expires soon.",
    )
    target_disk: TargetDiskAlarm = Field(
        default_factory=TargetDiskAlarm,
        description="A disk of an Elasticsearch target is nearly full.",
    )
    cutover: TenMinuteAlarm = Field(
        default_factory=TenMinuteAlarm,
        description="A cut-over that has not come to its end keeps the source read-only.",
    )
    repeat: Duration = Field(
        default=4 * 3600.0, description="After which time an alarm that lasts is sent again."
    )
    recover_after: Patience = Field(
        default=60.0, description="How long all must be well until an alarm is over."
    )
    restart: Restart | None = Field(
        default=None,
        description="Start a pipeline again that stopped with an error. Not given: only people do.",
    )
