-- Privileges of the account that writes to a MySQL or MariaDB target. A template:
--   {user}    the account, written 'name'@'host', for example 'retl'@'10.0.0.%'
--   {schema}  a schema that is written to; repeat the line for each of them
--             (GRANT takes _ in it for any character; \_ is the underscore itself)
-- `setl check` fills both in and prints only what is missing.
--
-- When one server is both source and target (a two-way channel), either use two accounts,
-- one with this file and one with grants-source.sql, or one account with both files.
-- Run retl.sql and fence.sql first.

-- Applying rows. SELECT is for keys, for the catalog and for verify.
GRANT SELECT, INSERT, UPDATE, DELETE ON {schema}.* TO {user};

-- Seeing triggers, which run for the rows of setl too; without it they are not looked at.
GRANT TRIGGER ON {schema}.* TO {user};

-- Marks, fence, writers and checkpoint. A new leader ends connections of the old one with
-- KILL; both use this account, and one's own connections need no privilege for that.
GRANT SELECT, INSERT, UPDATE, DELETE ON retl.* TO {user};

-- Only for pipelines with `ddl: pass`:
-- GRANT ALTER, CREATE, DROP, INDEX, REFERENCES ON {schema}.* TO {user};

-- Only for pipelines with `create: true`, which create target tables:
-- GRANT ALTER, CREATE, INDEX ON {schema}.* TO {user};

-- Optional: lets `setl status` name the connection that holds a lock which a load waits for.
-- GRANT PROCESS ON *.* TO {user};
-- MySQL lists locks in performance_schema, so there it takes this as well:
-- GRANT SELECT ON performance_schema.* TO {user};
