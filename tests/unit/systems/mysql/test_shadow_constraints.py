"""Which constraints a table loses and gets when a shadow replaces it."""

from typing import Any

import pytest

from setl.codec.sql.table_ddl import parse_table_ddl
from setl.systems.mysql.ddl.shadow_definition import (
    changes,
    constraints_of,
    created_keys,
    made_like,
    renamed_with,
    retained_keys,
)

SHOWN = """CREATE TABLE `c` (
  `id` int NOT NULL,
  `pid` int DEFAULT NULL,
  PRIMARY KEY (`id`),
  KEY `c_fk` (`pid`),
  CONSTRAINT `c_fk` FOREIGN KEY (`pid`) REFERENCES `p` (`id`) ON DELETE CASCADE,
  CONSTRAINT `few` CHECK ((`id` < 99))
) ENGINE=InnoDB"""
TABLE = ("s", "c")
DROPPED_KEY = "DROP FOREIGN KEY `c_fk`"


def parsed(text):
    ddl = parse_table_ddl(text, "")
    assert ddl is not None
    return ddl


def keys_of(text, parents=None) -> Any:
    ddl = parsed(f"CREATE TABLE s._c_new {text}")
    return created_keys(ddl, lambda name: (parents or {}).get(name[1], ("t", name[1])))


def test_like_copies_no_foreign_keys_and_may_name_checks_again():
    present = constraints_of(SHOWN, TABLE)
    assert list(changes(present, made_like(present, "c", numbers=False))) == [DROPPED_KEY]
    assert list(changes(present, made_like(present, "c", numbers=True))) == [
        DROPPED_KEY,
        "DROP CONSTRAINT `few`",
        "ADD CONSTRAINT `c_chk_1` CHECK ((`id` < 99))",
    ]


def test_foreign_keys_of_a_shadow_are_compared_by_name_and_meaning():
    present = [each for each in constraints_of(SHOWN, TABLE) if each.kind == "FOREIGN KEY"]
    same = keys_of(
        "(id INT, CONSTRAINT c_fk FOREIGN KEY (PID) REFERENCES p(ID) ON DELETE CASCADE)",
        {"p": ("s", "p")},
    )
    assert [each.text.lower() for each in same] == [each.text.lower() for each in present]
    (other,) = keys_of("(id INT, CONSTRAINT `_c``fk` FOREIGN KEY (pid) REFERENCES x.p (id))")
    assert list(changes(present, [other])) == [
        DROPPED_KEY,
        "ADD CONSTRAINT `_c``fk` FOREIGN KEY (`pid`) REFERENCES `t`.`p` (`id`)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "(id INT REFERENCES p (id))",
        "(id INT, FOREIGN KEY named (id) REFERENCES p (id))",
        "(id INT, CONSTRAINT FOREIGN KEY (id) REFERENCES p (id))",
    ],
)
def test_names_that_the_text_does_not_tell(text):
    assert keys_of(text) is None


def test_what_refers_to_nothing_at_the_target_has_no_text():
    (key,) = keys_of("(id INT, FOREIGN KEY (id) REFERENCES p (id))", {"p": None})
    assert (key.name, key.text, key.columns) == ("_c_new_ibfk_1", "", "FOREIGN KEY (`id`)")


def test_names_that_follow_a_rename():
    (key,) = keys_of("(id INT, FOREIGN KEY (id) REFERENCES p (id))")
    assert renamed_with(key, "_c_new", "c").name == "c_ibfk_1"
    for name in ("_c_new_fk", "_c_newer_ibfk_1", "own"):
        assert renamed_with(key._replace(name=name), "_c_new", "c").name == name


def test_keys_that_the_shadow_names_outlive_the_foreign_key_they_were_made_for():
    changed = [each for each in constraints_of(SHOWN, TABLE) if each.columns]
    for text, stored in {
        "(id INT, pid INT, KEY c_fk (pid))": ["RENAME INDEX `c_fk` TO `c_fk`"],
        "(id INT, pid INT)": [],
    }.items():
        ddl = parsed(f"CREATE TABLE s._c_new {text}")
        assert list(retained_keys(SHOWN, ddl, changed)) == stored
