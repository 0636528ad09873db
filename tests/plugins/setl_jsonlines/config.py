"""The target as a channel file describes it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from setl.channel.fields.checks import Text
from setl.channel.fields.endpoint import TargetConfig


class JsonLinesTarget(TargetConfig):
    """A folder on a machine that all tasks reach."""

    system: ClassVar[str] = "setl_jsonlines.system:JsonLines"

    type: Literal["jsonlines"] = Field(description="A folder of files in JSON lines.")
    folder: Text = Field(description="The folder; it has to be there.")

    @property
    def address(self) -> str:
        """See `TargetConfig.address`."""
        return self.folder
