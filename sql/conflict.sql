-- Rows that both sites write: conflicts found, and how the sites agree on them.
--
-- Where: on both servers of a two-way channel that has tables with `conflict: home` or
-- `conflict: {newest: …}`, after fence.sql. Once, as an administrator; running it again changes
-- nothing. They must be in the binlog, as all of this schema: the rows of setl_conflict are read
-- back from it by the opposite pipeline.
--
-- `pipeline` is always channel/pipeline, the one that writes here. Rows are JSON objects, column
-- to value, bytes as {"base64": …}; NULL is no row.

-- One row for each decision: what the source said, what was here, what stays. The list for
-- people, and the message to the other site; nobody needs a row once it is in the binlog.
CREATE TABLE IF NOT EXISTS retl.setl_conflict (
    id BIGINT NOT NULL AUTO_INCREMENT,
    pipeline VARCHAR(160) NOT NULL,
    found_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    schema_name VARCHAR(64) NOT NULL COMMENT 'of the table here',
    table_name VARCHAR(64) NOT NULL,
    row_key LONGTEXT NOT NULL COMMENT 'JSON: key column to value',
    column_names LONGTEXT NOT NULL COMMENT 'JSON: the columns that both sites have',
    policy VARCHAR(80) NOT NULL COMMENT 'home, or newest: column',
    winner VARCHAR(8) NOT NULL COMMENT 'source, target, or both where they agree',
    version BIGINT UNSIGNED NOT NULL COMMENT 'place of the change in the source',
    asks VARCHAR(64) NOT NULL COMMENT 'id of the question to the other site, or empty',
    answers VARCHAR(64) NOT NULL COMMENT 'id of the question that this answers, or empty',
    incoming LONGTEXT NULL COMMENT 'what the source said',
    held LONGTEXT NULL COMMENT 'what was here',
    result LONGTEXT NULL COMMENT 'what is here now',
    deleted LONGTEXT NULL COMMENT 'the row that was deleted, if the result is none',
    PRIMARY KEY (id),
    KEY by_pipeline (pipeline, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Questions that the other site has not answered yet. Until it does, its changes of these rows
-- are passed over, since its answer replaces them.
CREATE TABLE IF NOT EXISTS retl.setl_question (
    pipeline VARCHAR(160) NOT NULL,
    asks VARCHAR(64) NOT NULL,
    schema_name VARCHAR(64) NOT NULL,
    table_name VARCHAR(64) NOT NULL,
    row_key LONGTEXT NOT NULL,
    deleted LONGTEXT NULL,
    asked_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (pipeline, asks),
    KEY by_row (pipeline, row_key(100))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- How far each pipeline has applied the changes of these tables: what is delivered again must
-- not undo what was written here since.
CREATE TABLE IF NOT EXISTS retl.setl_applied (
    pipeline VARCHAR(160) NOT NULL,
    through BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (pipeline)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
