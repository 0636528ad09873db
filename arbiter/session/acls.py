"""The access rights of znodes: of those that a session creates, and of the root."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from kazoo.security import ACL, CREATOR_ALL_ACL, Id, make_digest_acl

from arbiter.access import Access
from arbiter.errors import Denied

_WHOEVER_I_AM = CREATOR_ALL_ACL[0]


def own_acls(access: Access) -> list[ACL]:
    """What new znodes allow, and to whom: everything to these credentials, nothing to others.

    Empty if there are no credentials; then everybody may do everything. A certificate shown to
    the servers is none here, although ZooKeeper counts it as one: the nodes of a cluster may
    have one each, and would lock each other out.
    """
    acls: list[ACL] = []
    if access.digest:
        acls.append(_digest(access.digest))
    if access.sasl:
        acls.append(_sasl(access.sasl.get("mechanism", ""), access.sasl.get("username", "")))
    return acls


def open_to_all(acls: Iterable[ACL]) -> bool:
    """Whether a client without any credentials is allowed anything."""
    return any(acl.id.scheme == "world" for acl in acls)


def check_root(
    root: str,
    below: Sequence[str],
    at: str,
    access: Access,
    *,
    read: Callable[[str], object],
    acls_of: Callable[[str], Sequence[ACL]],
) -> None:
    """See that the credentials open what is under a root, and that nothing else does.

    Args:
        root: the root.
        below: folders under it.
        at: which ZooKeeper, for messages.
        access: the credentials.
        read: reads a znode; raises Denied.
        acls_of: who may do what with a znode; nobody if there is none.

    Raises:
        Denied: one of that is not so.
    """
    try:
        read(root)
    except Denied as error:
        raise Denied(
            f"{at} does not let this client read {root}; the root was made with other"
            " credentials than these"
        ) from error
    if not own_acls(access):
        return
    for path in (root, *below):
        if open_to_all(acls_of(path)):
            raise Denied(
                f"{path} in {at} is open to clients without credentials, so those given would"
                f" protect nothing. {hint(root)}"
            )


def hint(root: str) -> str:
    """What to do about an open root, for an error message."""
    if root == "/":
        return "Choose a root of its own, such as /setl."
    return (
        "Choose another root, or close this one: stop all nodes, log in with zkCli.sh and run:"
        f" setAcl -R {root} auth::cdrwa"
    )


def _digest(login: str) -> ACL:
    if not login.isascii():
        return _WHOEVER_I_AM  # servers hash other letters in the encoding of their locale
    user, _, password = login.partition(":")
    return make_digest_acl(user, password, all=True)


def _sasl(mechanism: str, user: str) -> ACL:
    if mechanism != "DIGEST-MD5":
        return _WHOEVER_I_AM  # what a server makes of a Kerberos principal is its own business
    return ACL(_WHOEVER_I_AM.perms, Id("sasl", user))
