"""Field descriptions that several endpoints share."""

from __future__ import annotations

from typing import Final

USER: Final = "Account name."
CREDENTIAL: Final = "Its password; write ${NAME} and set NAME in the environment of the nodes."
MYSQL_SSL_CA: Final = (
    "File on the nodes with the certificate authorities to trust. Given, the connection uses TLS"
    " and the server's certificate is checked; empty, it uses TLS if the server offers it, and"
    " checks no certificate."
)
MYSQL_PUBLIC_KEY: Final = (
    "File on the nodes with the server's RSA public key (PEM). Without `ssl_ca`, a server that asks"
    " for the password gets it encrypted for this key, and not at all otherwise."
)
MYSQL_INSECURE_LOGIN: Final = (
    "Whether, without `ssl_ca`, whoever answers at this address may have the password. MySQL asks"
    " for it at an account's first log-in (caching_sha2_password). Not needed on this machine."
)
KAFKA_SSL_CA: Final = (
    "File on the nodes with the certificate authorities to trust. Given, the connection uses TLS"
    " and the broker's certificate is checked; empty, it uses no TLS, unless `kafka` says so."
)
