import pytest
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from arbiter.access import Access, Tls
from arbiter.session.acls import hint, open_to_all, own_acls

SASL = {"mechanism": "DIGEST-MD5", "username": "setl", "password": "p"}


def identities(access):
    return [(acl.id.scheme, acl.id.id, acl.acl_list) for acl in own_acls(access)]


@pytest.mark.parametrize("access", [Access(), Access(tls=Tls(certificate="n1.pem"))])
def test_without_credentials_nothing_is_closed(access):
    assert own_acls(access) == []


def test_each_credential_may_do_everything_and_nobody_else_anything():
    # The first is base64(sha1("setl:p:q")), as ZooKeeper's DigestAuthenticationProvider has it.
    assert identities(Access(digest="setl:p:q", sasl=SASL)) == [
        ("digest", "setl:DHkMmHHwu1SwhZIXpdzbKalrc/k=", ["ALL"]),
        ("sasl", "setl", ["ALL"]),
    ]


@pytest.mark.parametrize(
    "access", [Access(digest="setl:pässwort"), Access(sasl={"mechanism": "GSSAPI"})]
)
def test_the_server_says_who_it_is_where_this_side_cannot_know(access):
    assert own_acls(access) == CREATOR_ALL_ACL


@pytest.mark.parametrize("acls", [OPEN_ACL_UNSAFE, READ_ACL_UNSAFE])
def test_reading_is_enough_to_be_open(acls):
    mine = own_acls(Access(sasl=SASL))
    assert not open_to_all(mine)
    assert open_to_all([*mine, *acls])


def test_nobody_is_reported_to_close_the_whole_tree():
    assert "setAcl -R /setl auth::cdrwa" in hint("/setl")
    assert "setAcl" not in hint("/")
