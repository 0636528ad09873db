"""The table of servers says of each how it was tried, and what setl does with it."""

import re

from setl.systems.mysql.preflight.binlog_settings import NEWEST
from setl_embedded.server_home import RELEASES
from tests.other_servers.profiles import PROFILES

from .pages import PAGES

PAGE = (PAGES / "install.md").read_text(encoding="utf-8")
TABLE = re.findall(r"^\| ([A-Z]\w+ [\w .]*\d) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.M)
SYSTEMS = "MariaDB 10.11"
"""What deploy/install takes from the system's own packages."""


def series(profile):
    return re.sub(r"^(MySQL \d+\.\d+)\.\d+$", r"\1", profile.name)


def test_each_server_that_the_stub_plays_is_in_the_table():
    reported = {name: what for name, how, what in TABLE if how == "a stub"}
    real = {name for name, how, _ in TABLE if how == "the server"}
    assert {series(each) for each in PROFILES} - real == set(reported)
    refused = {series(each) for each in PROFILES if not each.reads}
    assert {name for name, what in reported.items() if what == "refused"} == refused


def test_each_server_that_is_real_can_be_installed():
    real = {name for name, how, _ in TABLE if how == "the server"}
    unpacked = {name.replace("mariadb-", "MariaDB ") for name in RELEASES if name != "mysql"}
    newest = f"MySQL {'.'.join(map(str, NEWEST['MySQL']))}"
    assert real == {SYSTEMS, newest, *unpacked}
