-- What a target keeps about schema changes that pipelines replicate to it (`ddl: pass`), and
-- about tables that they create (`create: true`).
--
-- Where: on every MySQL or MariaDB server that such a pipeline writes to, after fence.sql. Once, as
-- an administrator; running it again changes nothing.

-- DDL commits by itself, so it is in no transaction with a checkpoint: what has begun is written
-- down before, and what is done after it. `id` is the GTID at the source, or else the position.
CREATE TABLE IF NOT EXISTS retl.setl_ddl (
    pipeline VARCHAR(160) NOT NULL COMMENT 'channel/pipeline',
    id VARCHAR(180) NOT NULL COMMENT 'of the statement at the source: GTID, or position',
    step INT NOT NULL COMMENT 'number of the statement among those it became here',
    generation INT NOT NULL,
    version BIGINT UNSIGNED NOT NULL COMMENT 'place in the source, generation above it',
    state VARCHAR(10) NOT NULL COMMENT 'begun, done, failed; kept: of a shadow table; keys, made: of a created table; there: of any; aside: of one that left the mapping; default: of a database; server: of the source',
    shadow VARCHAR(200) NOT NULL DEFAULT '' COMMENT 'schema.table of the shadow table',
    statement LONGTEXT NOT NULL COMMENT 'as it ran at the source, or as it runs here',
    session TEXT NULL COMMENT 'JSON: settings of the session at the source',
    looks CHAR(64) NULL COMMENT 'digest of the tables before it began',
    error TEXT NULL,
    epoch BIGINT UNSIGNED NOT NULL COMMENT 'leadership',
    at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    PRIMARY KEY (pipeline, id, step)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
