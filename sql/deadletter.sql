-- Rows that could not be applied, for pipelines with `faulty_rows: dead_letter`.
--
-- Where: on every MySQL or MariaDB server that such a pipeline writes to, after fence.sql and
-- before the grants. Once, as an administrator; running it again changes nothing.
--
-- A row is written in the transaction that applies the good rows beside it. `id` is made from
-- pipeline, target, place in the source and key, so applying a batch again writes the same.

CREATE TABLE IF NOT EXISTS retl.setl_deadletter (
    id CHAR(16) NOT NULL,
    pipeline VARCHAR(160) NOT NULL,
    state ENUM('open', 'retry', 'superseded') NOT NULL COMMENT 'superseded: a later change of the row was applied',
    target VARCHAR(260) NOT NULL COMMENT 'schema.table it was meant for',
    source VARCHAR(260) NOT NULL COMMENT 'schema.table it came from, empty if several',
    version BIGINT UNSIGNED NOT NULL COMMENT 'order in the source',
    position VARCHAR(320) NOT NULL COMMENT 'where the source goes on after it',
    operation VARCHAR(10) NOT NULL COMMENT 'insert, update, upsert, delete, or record for one that was not decoded',
    key_hash CHAR(32) NOT NULL COMMENT 'of the key, empty if the key is not known',
    key_values LONGTEXT NULL COMMENT 'JSON',
    error TEXT NOT NULL,
    hint TEXT NOT NULL,
    payload LONGTEXT NOT NULL COMMENT 'JSON: all that is needed to apply it',
    attempts INT UNSIGNED NOT NULL DEFAULT 1,
    at DOUBLE NOT NULL COMMENT 'last attempt, seconds since 1970',
    batch BIGINT UNSIGNED NOT NULL,
    epoch BIGINT UNSIGNED NOT NULL,
    nid VARCHAR(128) NOT NULL,
    PRIMARY KEY (id),
    KEY of_target (pipeline, target, state),
    KEY in_order (pipeline, state, version)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
