"""Finds the system for a part of a channel file; the only place that tells systems apart."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, get_args, overload

from setl.channel.endpoints import SOURCES, TARGETS
from setl.channel.raw import Raw, items, part

if TYPE_CHECKING:
    from setl.channel.endpoint import SourceConfig, TargetConfig

    # Behind the ports are codecs, and a library that reads Avro.
    from setl.systems.port import SourceSystem, TargetSystem


@overload
def system_of(config: SourceConfig) -> SourceSystem: ...
@overload
def system_of(config: TargetConfig) -> TargetSystem: ...
def system_of(config: SourceConfig | TargetConfig) -> SourceSystem | TargetSystem:
    """The system of a source or a target, as its class names it; connected to nothing yet.

    A system is imported when a channel file asks for it, so that the client libraries of the
    others are not needed.
    """
    module, _, name = config.system.partition(":")
    return getattr(import_module(module), name)(config)


def modules_of(definition: Raw) -> frozenset[str]:
    """The modules of the systems that a channel names; whoever has to be quick imports them before.

    Args:
        definition: a channel file as it is stored, which may not be right in other places.
    """
    pipelines = [part(pipeline) for pipeline in items(definition.get("pipelines"))]
    return frozenset(
        module
        for end, modules in _MODULES.items()
        for pipeline in pipelines
        if (module := modules.get(str(part(pipeline.get(end)).get("type"))))
    )


def _modules(forms: Iterable[type[SourceConfig] | type[TargetConfig]]) -> dict[str, str]:
    return {
        get_args(form.model_fields["type"].annotation)[0]: form.system.partition(":")[0]
        for form in forms
    }


_MODULES = {"source": _modules(SOURCES), "target": _modules(TARGETS)}
