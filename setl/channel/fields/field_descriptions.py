"""Field descriptions that several endpoints share."""

from __future__ import annotations

from typing import Final

USER: Final = "Account name."
CREDENTIAL: Final = "Password, as ${NAME}, a variable in the environment of the nodes."
MYSQL_SSL_CA: Final = (
    "File on the nodes with trusted certificate authorities: requires TLS and verifies the"
    " server's certificate. Without it, TLS is used if the server offers it, unverified."
)
MYSQL_PUBLIC_KEY: Final = (
    "File on the nodes with the server's RSA public key (PEM), with which setl encrypts the"
    " password if there is no `ssl_ca`."
)
MYSQL_INSECURE_LOGIN: Final = (
    "Send the password, without `ssl_ca`, to whatever server answers at this address. MySQL asks"
    " for it at an account's first login (caching_sha2_password). Not needed for loopback."
)
KAFKA_SSL_CA: Final = (
    "File on the nodes with trusted certificate authorities: turns TLS on and verifies the"
    " broker's certificate. Without it, no TLS unless `kafka` turns it on."
)
