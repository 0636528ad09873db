-- Privileges of the account that reads a MySQL or MariaDB source. A template:
--   {user}    the account, written 'name'@'host', for example 'retl'@'10.0.0.%'
--   {schema}  a schema that is replicated; repeat the line for each of them
--             (GRANT takes _ in it for any character; \_ is the underscore itself)
-- `setl check` fills both in and prints only what is missing.
--
-- When one server is both source and target (a two-way channel), either use two accounts,
-- one with this file and one with grants-target.sql, or one account with both files.
-- Run retl.sql first: a privilege on a table needs the table.

-- Reading the binlog, and asking where it ends. MariaDB 10.5 and later call the second one
-- BINLOG MONITOR and take this name for it too.
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO {user};

-- Columns and keys of the tables (information_schema shows no others), and verify.
GRANT SELECT ON {schema}.* TO {user};

-- The definition of the mark table, and whether the system tables are there.
GRANT SELECT ON retl.* TO {user};

-- Heartbeats. Not needed with `heartbeat: 0`.
GRANT INSERT, UPDATE ON retl.xdual TO {user};

-- Optional: to load tables without a primary key. Each is locked for a moment, so that it is known
-- of which position of the binlog its rows are.
-- GRANT LOCK TABLES ON {schema}.* TO {user};

-- Optional: where tools change tables that are not replicated by statements, as pt-table-checksum
-- does, so that setl sees that nothing else happens with them.
-- GRANT SELECT, TRIGGER ON percona.* TO {user};

-- Only on MySQL, where applications use XA transactions: a load must not read rows as they were
-- before one that is prepared. Without it, loads lock what they read. MariaDB tells of those to
-- everybody.
-- GRANT XA_RECOVER_ADMIN ON *.* TO {user};
