from typing import NamedTuple

class Id(NamedTuple):
    scheme: str
    id: str

class ACL(NamedTuple):
    perms: int
    id: Id
    @property
    def acl_list(self) -> list[str]: ...

CREATOR_ALL_ACL: list[ACL]
OPEN_ACL_UNSAFE: list[ACL]
READ_ACL_UNSAFE: list[ACL]

def make_digest_acl(username: str, password: str, *, all: bool = ...) -> ACL: ...
