"""Finds the system for a part of a channel file; the only place that tells systems apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from setl.lazy_imports import imported

if TYPE_CHECKING:
    from setl.channel.fields.endpoint import SourceConfig, TargetConfig
    from setl.systems.port import SourceSystem, TargetSystem


@overload
def system_of(config: SourceConfig) -> SourceSystem: ...
@overload
def system_of(config: TargetConfig) -> TargetSystem: ...
def system_of(config: SourceConfig | TargetConfig) -> SourceSystem | TargetSystem:
    """The system of a source or a target, as its class names it; connected to nothing yet.

    A system is imported when a channel file asks for it, so that the client libraries of the
    others are not needed.

    Raises:
        NodeNotReadyError: this installation lacks it.
    """
    return imported(config.system, config.address)(config)
