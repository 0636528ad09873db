"""Which modules have the systems that a stored channel names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

from setl.channel.fields.endpoints import SOURCES, TARGETS
from setl.channel.text.raw import Raw, items, part

if TYPE_CHECKING:
    from setl.channel.fields.endpoint import SourceConfig, TargetConfig


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
