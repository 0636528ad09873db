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
KAFKA_SSL_CA: Final = (
    "File on the nodes with the certificate authorities to trust. Given, the connection uses TLS"
    " and the broker's certificate is checked; empty, it uses no TLS, unless `kafka` says so."
)
