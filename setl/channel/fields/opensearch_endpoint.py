"""An OpenSearch cluster as the target of a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import ClassVar, Final, Literal

from pydantic import Field
from typing_extensions import override

from setl.channel.fields.checks import Seconds, Url
from setl.channel.fields.endpoint import TargetConfig
from setl.channel.fields.field_descriptions import CREDENTIAL, USER
from setl.channel.text.problems import Path
from setl.channel.text.raw import Raw, items

_SERVERLESS: Final = re.compile(r"\.aoss\.[a-z0-9-]*\.?amazonaws\.com", re.IGNORECASE)


class OpenSearchTarget(TargetConfig):
    """An OpenSearch cluster as target."""

    system: ClassVar[str] = "setl.systems.opensearch.target_system:OpenSearchTargetSystem"
    holds_documents: ClassVar[bool] = True
    url_schemes: ClassVar[Mapping[str, str]] = {"opensearch": "http", "opensearch+https": "https"}

    type: Literal["opensearch"] = Field(description="OpenSearch.")
    hosts: list[Url] = Field(min_length=1, description="URLs of its nodes, http or https.")
    user: str = Field(default="", description=USER)
    password: str = Field(default="", repr=False, description=CREDENTIAL)
    aws_region: str = Field(
        default="",
        description="Region of an Amazon OpenSearch Service domain: requests are signed (SigV4), in"
        " place of an account.",
    )
    aws_access_key_id: str = Field(
        default="",
        description="Key that signs. Default: what AWS's SDK finds on the machine, such as the role"
        " of the instance.",
    )
    aws_secret_access_key: str = Field(
        default="", repr=False, description="Its secret, as ${NAME}."
    )
    ca_certs: str = Field(
        default="",
        description="File on the nodes with trusted certificate authorities. Default: the"
        " system's.",
    )
    request_timeout: Seconds = Field(
        default=30.0, description="Seconds to wait for an answer before a request counts as lost."
    )

    @property
    @override
    def address(self) -> str:
        return ",".join(self.hosts)

    @classmethod
    def rules(cls, raw: Raw) -> Iterable[tuple[Path, str]]:
        """One way to log in, complete, and to something that keeps what is promised."""
        if raw.get("password") and not raw.get("user"):
            yield ("user",), "is required where there is a password"
        if raw.get("aws_region") and raw.get("user"):
            yield ("aws_region",), "cannot be given together with `user`; choose one of them"
        if bool(raw.get("aws_access_key_id")) != bool(raw.get("aws_secret_access_key")):
            yield ("aws_access_key_id",), "needs `aws_secret_access_key`, and the other way round"
        if raw.get("aws_access_key_id") and not raw.get("aws_region"):
            yield ("aws_region",), "is required where there is a key of AWS"
        for number, host in enumerate(items(raw.get("hosts"))):
            if _SERVERLESS.search(str(host)):
                yield ("hosts", number), "is of OpenSearch Serverless, which cannot be a target"
