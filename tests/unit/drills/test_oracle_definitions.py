"""Two definitions that the oracle compares: equal tables are equal, and no others."""

import pytest

from setl_drills.oracle.comparison import comparable

NAMED = """CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT,
  `a``b` varchar(9) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci NOT NULL DEFAULT 'x',
  `e` enum('a)','it''s') CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci DEFAULT NULL,
  `v` text CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci GENERATED ALWAYS AS (1) VIRTUAL,
  `c` int DEFAULT NULL COMMENT ' CHARACTER SET latin1 COLLATE latin1_bin',
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=7 DEFAULT CHARSET=utf8mb3 COMMENT='utf8'"""
PLAIN = """CREATE TABLE `t` (
  `id` int NOT NULL AUTO_INCREMENT,
  `a``b` varchar(9) NOT NULL DEFAULT 'x',
  `e` enum('a)','it''s') DEFAULT NULL,
  `v` text GENERATED ALWAYS AS (1) VIRTUAL,
  `c` int DEFAULT NULL COMMENT ' CHARACTER SET latin1 COLLATE latin1_bin',
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=9 DEFAULT CHARSET=utf8 COMMENT='utf8'"""
COLUMNS: list[str] = ["a`b", "e", "v"]
MB3 = dict.fromkeys(COLUMNS, "utf8mb3_general_ci")
OLD = dict.fromkeys(COLUMNS, "utf8_general_ci")


def test_a_character_set_that_is_the_tables_may_be_written_or_not():
    assert comparable(NAMED, MB3) == comparable(PLAIN, MB3) == comparable(PLAIN, OLD)


@pytest.mark.parametrize(
    ("text", "collations"),
    [
        (PLAIN, {**MB3, "a`b": "utf8mb3_bin"}),  # shown in the text or not
        (PLAIN, {**MB3, "e": "utf8mb4_general_ci"}),
        (PLAIN.replace("CHARSET=utf8", "CHARSET=utf8mb4"), MB3),
        (PLAIN.replace("COMMENT='utf8'", "COMMENT='utf8mb3'"), MB3),
        (PLAIN.replace("SET latin1", "SET latin2"), MB3),
        (PLAIN.replace("'it''s'", "'its'"), MB3),
        (PLAIN.replace("varchar(9)", "varchar(8)"), MB3),
    ],
)
def test_real_differences_stay(text, collations):
    assert comparable(text, collations) != comparable(NAMED, MB3)
