"""Versioned tables as they would be without a history."""

from setl.systems.mysql.creation.versioning import without_versioning

OPTIONS = ") ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"


def test_a_table_that_is_not_versioned_is_left_as_it_is():
    text = (
        f"CREATE TABLE `t` (\n  `id` int(11) NOT NULL COMMENT 'WITH SYSTEM VERSIONING'\n{OPTIONS}"
    )
    assert without_versioning(text) == text


def test_nothing_of_a_history_is_left():
    text = (
        "CREATE TABLE `t` (\n"
        "  `rs` timestamp(6) GENERATED ALWAYS AS ROW START INVISIBLE,\n"
        "  `id` int(11) NOT NULL,\n"
        "  `v` int(11) DEFAULT NULL WITHOUT SYSTEM VERSIONING,\n"
        "  `re` timestamp(6) GENERATED ALWAYS AS ROW END,\n"
        "  PRIMARY KEY (`id`,`re`),\n"
        "  UNIQUE KEY `v` (`v`,`re`),\n"
        "  PERIOD FOR SYSTEM_TIME (`rs`, `re`)\n"
        f"{OPTIONS} WITH SYSTEM VERSIONING COMMENT='c'\n"
        " PARTITION BY SYSTEM_TIME \n(PARTITION `p0` HISTORY ENGINE = InnoDB,\n"
        " PARTITION `pn` CURRENT ENGINE = InnoDB)"
    )
    assert without_versioning(text) == (
        "CREATE TABLE `t` (\n"
        "  `id` int(11) NOT NULL,\n"
        "  `v` int(11) DEFAULT NULL,\n"
        "  PRIMARY KEY (`id`),\n"
        "  UNIQUE KEY `v` (`v`)\n"
        f"{OPTIONS} COMMENT='c'"
    )
