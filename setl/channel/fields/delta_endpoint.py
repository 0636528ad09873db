"""Delta tables as the target of a pipeline."""

from __future__ import annotations

from collections.abc import Iterable
from posixpath import isabs
from typing import ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import override

from setl.channel.fields.checks import Text
from setl.channel.fields.endpoint import TargetConfig
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, part
from setl.channel.text.references import has_reference

STORAGE_OPTIONS: Final = frozenset({
    "aws_access_key_id", "aws_secret_access_key", "aws_session_token", "aws_region",
    "aws_endpoint_url", "aws_allow_http", "aws_virtual_hosted_style_request",
})  # fmt: skip
"""What a channel file may say of S3. None of them takes the condition off a commit's request."""


class DeltaTarget(TargetConfig):
    """Delta tables in a folder or in S3."""

    system: ClassVar[str] = "setl.systems.delta.target_system:DeltaTargetSystem"

    stores_fence: ClassVar[bool] = True

    type: Literal["delta"] = Field(description="Delta tables.")
    path: Text = Field(
        description="Folder of the tables, which all nodes and Spark's executors reach, or"
        " s3://bucket/folder. A table's rows are in <path>/<schema>/<table>."
    )
    storage_options: dict[str, str] = Field(
        default={},
        repr=False,
        description="For S3: " + ", ".join(sorted(STORAGE_OPTIONS)) + ". Secrets as ${NAME}."
        " Default: the environment of the nodes and executors.",
    )
    zero_dates: Literal["refuse", "as_null"] = Field(
        default="refuse",
        description="What becomes of dates that no calendar has, such as 0000-00-00: `refuse`"
        " stops the pipeline, `as_null` stores NULL.",
    )
    optimize: int = Field(
        default=0,
        ge=0,
        description="Commits of a table after which its small files are rewritten into larger"
        " ones; 0 never.",
    )
    vacuum: bool = Field(
        default=False,
        description="Also delete files that no version needs that is younger than the table's"
        " retention (delta.deletedFileRetentionDuration, a week by default), and than a day. Needs"
        " `optimize`.",
    )

    @property
    @override
    def address(self) -> str:
        return self.path

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """A place that means the same on every machine, and options of that place."""
        path, options = raw.get("path"), part(raw.get("storage_options"))
        if isinstance(path, str) and not has_reference(path):
            remote = path.startswith("s3://")
            if not remote and ("://" in path or not isabs(path)):
                yield ("path",), "must be a path from the root, or begin with s3://"
            if not remote and options:
                yield ("storage_options",), "mean nothing to a folder"
        for name in options:
            if name not in STORAGE_OPTIONS:
                known = ", ".join(sorted(STORAGE_OPTIONS))
                yield ("storage_options", str(name)), f"is none of {known}"
        if raw.get("vacuum") and not raw.get("optimize"):
            yield ("optimize",), "is required for `vacuum`, which follows it"
