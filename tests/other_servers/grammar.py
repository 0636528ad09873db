"""What each server refuses: statement → since which version it is known, and the error before.

From the manuals: https://dev.mysql.com/doc/refman/8.4/en/added-deprecated-removed.html and those of
5.7, 8.0 and 8.4 for each statement, and https://mariadb.com/kb/en/ for MariaDB's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ALWAYS = (0,)
_NEVER = (999,)

SYNTAX = 1064
NO_FUNCTION = 1305
NO_TABLE = 1146
NO_COLUMN = 1054
NO_VARIABLE = 1193
NO_VALUE = 1231
NO_COLLATION = 1273
NO_INFORMATION = 1109
DENIED = 1227


@dataclass(frozen=True)
class Rule:
    """A kind of statement, and who knows it.

    Attributes:
        pattern: found in the statements that it is about.
        mysql: the first MySQL that knows it, and the first one that does not any more.
        mariadb: the same of MariaDB.
        error: what a server says that does not know it.
    """

    pattern: str
    error: int
    mysql: tuple[int, ...] = _ALWAYS
    mariadb: tuple[int, ...] = _ALWAYS
    mysql_until: tuple[int, ...] = _NEVER

    def refuses(self, profile, statement):
        since = self.mariadb if profile.mariadb else self.mysql
        until = _NEVER if profile.mariadb else self.mysql_until
        return not since <= profile.numbers < until and bool(
            re.search(self.pattern, statement, re.IGNORECASE | re.DOTALL)
        )


RULES = (
    Rule(r"^SHOW REPLICAS|^SHOW REPLICA STATUS", SYNTAX, (8, 0, 22), (10, 5, 1)),
    Rule(r"^SHOW SLAVE (STATUS|HOSTS)", SYNTAX, mysql_until=(8, 4)),
    Rule(r"^SHOW ALL SLAVES", SYNTAX, _NEVER),
    Rule(r"^SHOW MASTER STATUS", SYNTAX, mysql_until=(8, 4)),
    Rule(r"^SHOW BINARY LOG STATUS", SYNTAX, (8, 2), _NEVER),
    Rule(r"\bFOR SHARE\b", SYNTAX, (8, 0, 1), _NEVER),
    Rule(r"\bSKIP LOCKED\b", SYNTAX, (8, 0, 1), (10, 6)),
    Rule(r"\bFOR UPDATE NOWAIT\b", SYNTAX, (8, 0, 1), (10, 3)),
    Rule(r"\bCURRENT_ROLE\(\)", NO_FUNCTION, (8,)),
    Rule(r"^SHOW GRANTS .*\bUSING\b", SYNTAX, (8,), _NEVER),
    Rule(r"^SHOW CREATE USER", SYNTAX, (5, 7, 6), (10, 2)),
    Rule(r"^SET PERSIST", SYNTAX, (8,), _NEVER),
    Rule(r"^GRANT .*\bXA_RECOVER_ADMIN\b", SYNTAX, (8,), _NEVER),
    Rule(r"^(CREATE|SET|DROP) (DEFAULT )?ROLE", SYNTAX, (8,)),
    Rule(r"^WITH\b|\bWITH RECURSIVE\b", SYNTAX, (8, 0, 1), (10, 2)),
    Rule(r"\bVALUES ROW\(|\) AS new\b", SYNTAX, (8, 0, 19), _NEVER),
    Rule(r"\bJSON_TABLE\(", SYNTAX, (8, 0, 4), (10, 6)),
    Rule(r"\bOVER \(", SYNTAX, (8, 0, 2), (10, 2)),
    Rule(r"\bLATERAL\b", SYNTAX, (8, 0, 14), _NEVER),
    Rule(r"\b(INTERSECT|EXCEPT)\b", SYNTAX, (8, 0, 31), (10, 3)),
    Rule(r"\bRETURNING\b", SYNTAX, _NEVER, (10, 5)),
    Rule(r"\bAS JSON\)", SYNTAX, (5, 7, 8), _NEVER),
    Rule(r"\bSTRING_TO_VECTOR|\bTO_VECTOR\(", NO_FUNCTION, (9,), _NEVER),
    Rule(r"\bJSON_(REPLACE|ARRAY|EXTRACT)\(", NO_FUNCTION, (5, 7, 8), (10, 2, 3)),
    Rule(r"\bRELEASE_ALL_LOCKS\(", NO_FUNCTION, (5, 7, 5), (10, 5, 2)),
    Rule(r"\bWAIT_FOR_EXECUTED_GTID_SET\(", NO_FUNCTION, (5, 7, 5), _NEVER),
    Rule(r"\bGTID_SUBTRACT\(", NO_FUNCTION, (5, 6, 5), _NEVER),
    Rule(r"\bBINLOG_GTID_POS\(", NO_FUNCTION, _NEVER),
    Rule(r"performance_schema\.data_lock", NO_TABLE, (8, 0, 1), _NEVER),
    Rule(r"performance_schema\.processlist", NO_TABLE, (8, 0, 22), _NEVER),
    Rule(r"mysql\.rds_", NO_TABLE, _NEVER, _NEVER),  # but on Amazon's, see `refusal`
    Rule(r"information_schema\.innodb_lock", NO_INFORMATION, _ALWAYS, mysql_until=(8,)),
    Rule(r"information_schema\.USERS\b", NO_INFORMATION, _NEVER, (11, 5)),
    Rule(r"\bEXPRESSION\b.*information_schema\.STATISTICS", NO_COLUMN, (8, 0, 13), _NEVER),
    Rule(r"\bGENERATION_EXPRESSION\b", NO_COLUMN, (5, 7, 6), (10, 2, 5)),
    Rule(r"TIME_TRUNCATE_FRACTIONAL", NO_VALUE, (8,), _NEVER),
    Rule(r"TIME_ROUND_FRACTIONAL", NO_VALUE, _NEVER, (10, 4, 1)),
    Rule(r"UTF8_IS_UTF8MB3", NO_VALUE, _NEVER, (10, 6, 1)),
    Rule(r"_0900_", NO_COLLATION, (8, 0, 1), (11, 4, 5)),
    Rule(r"_uca1400_", NO_COLLATION, _NEVER, (10, 10, 1)),
)

VARIABLES = {
    # Name → the first MySQL that has it, the first that has it no more, the first MariaDB.
    "binlog_row_metadata": ((8, 0, 1), _NEVER, (10, 5)),
    "binlog_row_value_options": ((8, 0, 3), _NEVER, _NEVER),
    "binlog_expire_logs_seconds": ((8, 0, 1), _NEVER, (10, 6, 1)),
    "expire_logs_days": (_ALWAYS, (8, 4), _ALWAYS),
    "binlog_transaction_compression": ((8, 0, 20), _NEVER, _NEVER),
    "binlog_storage_engine": (_NEVER, _NEVER, (12, 3)),
    "max_binlog_total_size": (_NEVER, _NEVER, (11, 4)),
    "log_replica_updates": ((8, 0, 26), _NEVER, _NEVER),
    "transaction_isolation": ((5, 7, 20), _NEVER, (11, 1)),
    "tx_isolation": (_ALWAYS, (8, 0, 3), _ALWAYS),
    "transaction_read_only": ((5, 7, 20), _NEVER, (11, 1)),
    "max_execution_time": ((5, 7, 8), _NEVER, _NEVER),
    "max_statement_time": (_NEVER, _NEVER, (10, 1, 1)),
    "system_versioning_asof": (_NEVER, _NEVER, (10, 3, 4)),
    "show_create_table_verbosity": ((5, 7, 22), _NEVER, _NEVER),
    "show_gipk_in_create_table_and_information_schema": ((8, 0, 30), _NEVER, _NEVER),
    "sql_generate_invisible_primary_key": ((8, 0, 30), _NEVER, _NEVER),
    "sql_require_primary_key": ((8, 0, 13), _NEVER, _NEVER),
    "sql_if_exists": (_NEVER, _NEVER, (10, 5, 2)),
    "check_constraint_checks": (_NEVER, _NEVER, (10, 2, 1)),
    "gtid_binlog_state": (_NEVER, _NEVER, (10, 0, 5)),
    "gtid_executed": ((5, 6, 5), _NEVER, _NEVER),
    "gtid_owned": ((5, 6, 5), _NEVER, _NEVER),
    "gtid_mode": ((5, 6, 5), _NEVER, _NEVER),
    "server_uuid": ((5, 6), _NEVER, _NEVER),
    "super_read_only": ((5, 7, 8), _NEVER, _NEVER),
    "default_password_lifetime": ((5, 7, 4), _NEVER, (10, 4, 3)),
}

_PRIVILEGES = r"SUPER|SYSTEM_VARIABLES_ADMIN|BINLOG_ADMIN|READ.ONLY ADMIN|REPLICATION_SLAVE_ADMIN"
_OF_AMAZON = (
    r"^SET (GLOBAL|PERSIST|PERSIST_ONLY)\b",
    r"^SET (SESSION |@@SESSION\.)?(sql_log_bin|binlog_format|gtid_next|pseudo_\w+)\b",
    rf"^GRANT .*\b({_PRIVILEGES})\b",
    r"^FLUSH (TABLES WITH READ LOCK|BINARY LOGS)",
    r"^RESET\b|^PURGE\b|^CHANGE (MASTER|REPLICATION)",
)
"""What the administrator of a server of Amazon's may not do."""


def effective(statement, profile):
    """A statement as a server reads it: executable comments are for some versions only."""

    def shown(found):
        of_mariadb, digits, body = found.groups()
        number = int(digits or 0)
        major, minor, patch = (*profile.numbers, 0, 0)[:3]
        own = major * 10_000 + minor * 100 + patch
        if profile.mariadb:
            # It skips those for MySQL 5.7 and later.
            read = number <= own and (of_mariadb or not 50_700 <= number <= 99_999)
        else:
            read = not of_mariadb and number <= own
        return body if read else " "

    text = re.sub(r"/\*(M)?!(\d{5,6})?(.*?)\*/", shown, statement, flags=re.DOTALL)
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL).strip()


def has_variable(profile, name):
    if name == "aurora_version":
        return profile.service == "Aurora"
    since, until, mariadb = VARIABLES.get(name, (_ALWAYS, _NEVER, _ALWAYS))
    if profile.mariadb:
        return profile.numbers >= mariadb
    return since <= profile.numbers < until


def refusal(profile, statement):
    """The error with which a server refuses a statement and what it says; None if it takes it."""
    text = effective(statement, profile)
    for name in re.findall(r"@@(?:GLOBAL\.|SESSION\.)?(\w+)", text, re.IGNORECASE):
        if not has_variable(profile, name.lower()):
            return NO_VARIABLE, f"Unknown system variable '{name}'"
    if re.match(r"SET\b", text, re.IGNORECASE):
        for name in re.findall(r"(?:^SET(?: SESSION| GLOBAL)?|,)\s*(\w+)\s*=", text, re.IGNORECASE):
            if not has_variable(profile, name.lower()):
                return NO_VARIABLE, f"Unknown system variable '{name}'"
    if profile.service:
        kinds = list(_OF_AMAZON)
        if profile.service == "RDS":
            kinds.append(r"^GRANT .*\bCONNECTION_ADMIN\b")
        for kind in kinds:
            if re.search(kind, text, re.IGNORECASE):
                return DENIED, "Access denied; you need (at least one of) the SUPER privilege(s)"
    for rule in RULES:
        if rule.pattern == r"mysql\.rds_" and profile.service:
            continue
        if rule.refuses(profile, text):
            return rule.error, f"{rule.pattern} is not known to {profile.version}"
    return None
