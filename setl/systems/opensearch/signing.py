"""Signs requests for Amazon OpenSearch Service (Signature Version 4), as its client does.

The service is always ``es``. OpenSearch Serverless (``aoss``) answers neither ``GET /`` nor
``_refresh``, on which checks and comparisons rely; channel files with its addresses are refused.

Source: https://docs.aws.amazon.com/opensearch-service/latest/developerguide/request-signing.html
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

from opensearchpy import Urllib3AWSV4SignerAuth

from setl.errors import NodeNotReadyError
from setl.systems.opensearch.product import AwsLogin, missing_package

SERVICE: Final = "es"


def signer(login: AwsLogin, server: str) -> Urllib3AWSV4SignerAuth:
    """What signs each request, with keys that are renewed where they expire.

    Raises:
        ConfigurationError: this machine has no key, or botocore is not installed.
    """
    try:
        credentials = _credentials(login)
    except ModuleNotFoundError as error:
        raise missing_package("botocore", "opensearch-aws", error) from error
    if credentials is None:
        raise NodeNotReadyError(
            "this machine has no key of AWS to sign requests with",
            hint="Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, give the instance a role, or"
            " write `aws_access_key_id` and `aws_secret_access_key`",
            server=server,
        )
    return Urllib3AWSV4SignerAuth(credentials, login.region, SERVICE)


def _credentials(login: AwsLogin) -> Any:
    """A fixed key, or what botocore finds; None if it finds nothing."""
    # An extra of its own: it is large, and only needed at AWS.
    of_keys: Any = import_module("botocore.credentials")
    if login.access_key_id:
        return of_keys.Credentials(login.access_key_id, login.secret_access_key)
    sessions: Any = import_module("botocore.session")
    broken: Any = import_module("botocore.exceptions").BotoCoreError
    try:
        return sessions.get_session().get_credentials()
    except broken as error:
        raise NodeNotReadyError(
            f"the key of AWS cannot be read: {error}",
            hint="Check AWS_PROFILE and the files under ~/.aws",
        ) from error
