"""Field descriptions that several endpoints share."""

from __future__ import annotations

from typing import Final

USER: Final = "Account name."
CREDENTIAL: Final = "Password. Write ${NAME}, and set NAME in the environment of the nodes."
MYSQL_SSL_CA: Final = (
    "File on the nodes with trusted certificate authorities. If set, the connection requires TLS"
    " and verifies the server's certificate. If empty, it uses TLS if the server offers it,"
    " without verification."
)
MYSQL_PUBLIC_KEY: Final = (
    "File on the nodes with the server's RSA public key (PEM). Without `ssl_ca`, setl sends the"
    " password only encrypted with this key."
)
MYSQL_INSECURE_LOGIN: Final = (
    "Whether to send the password, without `ssl_ca`, to whatever server answers at this address."
    " MySQL asks for it at an account's first login (caching_sha2_password). Not needed for"
    " loopback."
)
KAFKA_SSL_CA: Final = (
    "File on the nodes with trusted certificate authorities. If set, the connection uses TLS and"
    " verifies the broker's certificate. If empty, it uses no TLS unless `kafka` turns it on."
)
