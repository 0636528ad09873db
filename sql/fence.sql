-- What a target keeps about the pipelines that write to it: fence, writers, checkpoint.
--
-- Where: on every MySQL or MariaDB server that a channel writes to, after retl.sql and before
-- the grants. Once, as an administrator; running it again changes nothing.
--
-- `pipeline` is always channel/pipeline. All tables are InnoDB: the fence is a row lock, and
-- the checkpoint moves in a transaction.

-- The one epoch that may write for a pipeline. Every load transaction locks its row in share
-- mode and compares; a new leader raises it, which waits for the transactions still open.
CREATE TABLE IF NOT EXISTS retl.setl_fence (
    pipeline VARCHAR(160) NOT NULL,
    epoch BIGINT UNSIGNED NOT NULL COMMENT 'creation zxid of the mainstem',
    nid VARCHAR(128) NOT NULL COMMENT 'node that raised it',
    raised_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    PRIMARY KEY (pipeline)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Connections that load, so that a new leader can end those of an old one.
CREATE TABLE IF NOT EXISTS retl.setl_writer (
    conn_id BIGINT UNSIGNED NOT NULL COMMENT 'CONNECTION_ID() of the writer',
    pipeline VARCHAR(160) NOT NULL,
    epoch BIGINT UNSIGNED NOT NULL,
    nid VARCHAR(128) NOT NULL,
    opened_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (conn_id, pipeline)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Up to where each pipeline has applied its source.
CREATE TABLE IF NOT EXISTS retl.setl_checkpoint (
    pipeline VARCHAR(160) NOT NULL,
    epoch BIGINT UNSIGNED NOT NULL COMMENT 'leadership that stored it',
    checkpoint LONGTEXT NOT NULL COMMENT 'JSON',
    updated_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    PRIMARY KEY (pipeline)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Up to where tables are loaded whose rows can be in each other's way: what is delivered again
-- is not applied again there.
CREATE TABLE IF NOT EXISTS retl.setl_loaded (
    pipeline VARCHAR(160) NOT NULL,
    schema_name VARCHAR(64) NOT NULL,
    table_name VARCHAR(64) NOT NULL,
    through BIGINT UNSIGNED NOT NULL COMMENT 'place in the source, generation above it',
    PRIMARY KEY (pipeline, schema_name, table_name)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
