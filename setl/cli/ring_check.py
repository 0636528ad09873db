"""Tells whether the user has named the cluster in which rings are looked for."""

from __future__ import annotations

import click
from click.core import ParameterSource


def option_is_given(name: str) -> bool:
    """Whether an option of the running command comes from the user or the environment."""
    source = click.get_current_context().get_parameter_source(name)
    return source is not ParameterSource.DEFAULT
