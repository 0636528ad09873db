"""When a pipeline raises an alarm: limits, and for how long they must be passed."""

from __future__ import annotations

from pydantic import Field

from setl.channel.fields.checks import Duration, Patience
from setl.channel.text.strict_model import StrictModel

_FOR = "How long the condition must hold before the alarm is raised: `2m`, `1h`, or seconds."
_ENABLED = "Whether the rule is active."


class AlarmRule(StrictModel):
    """A rule whose alarm is raised at once by default."""

    enabled: bool = Field(default=True, description=_ENABLED)
    for_: Patience = Field(default=0.0, alias="for", description=_FOR)


class LagAlarm(AlarmRule):
    """The lag of the target."""

    above: Duration = Field(default=300.0, description="Lag above which the condition holds.")
    for_: Patience = Field(default=120.0, alias="for", description=_FOR)


class MinuteAlarm(AlarmRule):
    """A rule that waits one minute by default."""

    for_: Patience = Field(default=60.0, alias="for", description=_FOR)


class FiveMinuteAlarm(AlarmRule):
    """A rule that waits five minutes by default."""

    for_: Patience = Field(default=300.0, alias="for", description=_FOR)


class TenMinuteAlarm(AlarmRule):
    """A rule that waits ten minutes by default."""

    for_: Patience = Field(default=600.0, alias="for", description=_FOR)


class CountAlarm(AlarmRule):
    """A count above a limit."""

    above: int = Field(default=0, ge=0, description="The limit.")


class VerificationAgeAlarm(AlarmRule):
    """No pass of standing verification has been completed for a long time."""

    passes: float = Field(
        default=3.0,
        ge=1,
        le=1000,
        description="Age of the last complete pass above which the condition holds, as a multiple"
        " of `every` of `verify`.",
    )


class PositionAlarm(AlarmRule):
    """The source will soon remove changes that are not applied yet."""

    before: Duration = Field(
        default=12 * 3600.0,
        description="Remaining time until the source may remove them at which the alarm is raised.",
    )
    retention: Duration | None = Field(
        default=None,
        description="Retention of the source's stream. Set it if the source does not report its"
        " retention, or removes data earlier. Default: as reported by the source.",
    )


class ExpiryAlarm(AlarmRule):
    """A certificate or a password expires."""

    before: Duration | None = Field(
        default=None,
        description="Remaining time at which the alarm is raised. Default: 14 days, or a sixth of"
        " the lifetime if that is less.",
    )


class TargetDiskAlarm(AlarmRule):
    """A disk of the target is nearly full."""

    free_percent: float | None = Field(
        default=None,
        gt=0,
        lt=100,
        description="Percent of the disk that must be free. Default: the server's own limit, or"
        " 10.",
    )
    for_: Patience = Field(default=60.0, alias="for", description=_FOR)


class Restart(StrictModel):
    """Automatic restart of a pipeline that stopped with an error."""

    times: int = Field(default=3, ge=1, le=60, description="Restarts within an hour, at most.")
    after: Duration = Field(
        default=60.0, description="Time to wait after the alarm, and after the previous restart."
    )


class Alarms(StrictModel):
    """The rules of a pipeline. The defaults suit most installations."""

    lag: LagAlarm = Field(default_factory=LagAlarm, description="The target is behind the source.")
    stopped: AlarmRule = Field(
        default_factory=AlarmRule, description="The pipeline stopped with an error."
    )
    no_leader: MinuteAlarm = Field(
        default_factory=MinuteAlarm, description="The channel is started, and no node leads."
    )
    no_answer: FiveMinuteAlarm = Field(
        default_factory=FiveMinuteAlarm,
        description="The leader does not answer, so the state of the pipeline is unknown.",
    )
    no_progress: FiveMinuteAlarm = Field(
        default_factory=FiveMinuteAlarm,
        description="The pipeline makes no progress, or retries a failure repeatedly.",
    )
    no_standby: TenMinuteAlarm = Field(
        default_factory=TenMinuteAlarm, description="No other node could take over."
    )
    dead_letters: CountAlarm = Field(
        default_factory=CountAlarm, description="There are open dead letters."
    )
    echoes: CountAlarm = Field(
        default_factory=CountAlarm,
        description="Transactions of the channel came back and were not dropped as loopback.",
    )
    verification_differences: CountAlarm = Field(
        default_factory=CountAlarm,
        description="Standing verification found keys that differ.",
    )
    verification_age: VerificationAgeAlarm = Field(
        default_factory=VerificationAgeAlarm,
        description="Standing verification has not completed a pass for a long time.",
    )
    position: PositionAlarm = Field(
        default_factory=PositionAlarm,
        description="The source will soon remove changes that are not applied yet, or has removed"
        " them; also while the channel is paused or stopped.",
    )
    expiry: ExpiryAlarm = Field(
        default_factory=ExpiryAlarm,
        description="A server's certificate or the account's password expires soon.",
    )
    target_disk: TargetDiskAlarm = Field(
        default_factory=TargetDiskAlarm,
        description="A disk of a target of documents is nearly full.",
    )
    cutover: TenMinuteAlarm = Field(
        default_factory=TenMinuteAlarm,
        description="An unfinished cut-over keeps the source read-only.",
    )
    repeat: Duration = Field(
        default=4 * 3600.0, description="Time after which a lasting alarm is sent again."
    )
    recover_after: Patience = Field(
        default=60.0, description="How long the condition must be absent until the alarm is over."
    )
    restart: Restart | None = Field(
        default=None,
        description="Restart a pipeline that stopped with an error. Default: no automatic restart.",
    )
