-- Rows that both sites write: conflicts found, and how the sites agree on them.
--
-- Where: on both servers of a two-way channel that has tables with `conflict: home` or
-- `conflict: {newest: …}`, after fence.sql. Once, as an administrator; running it again changes
-- nothing. They must be in the binlog, as all of this schema: the rows of setl_recent are read
-- back from it by the opposite pipeline.
--
-- `pipeline` is always channel/pipeline, the one that writes here. Rows are JSON objects, column
-- to value, bytes as {"base64": …}; NULL is no row.

-- One row for each decision: what the source said, what was here, what stays. The list for
-- people; setl itself never reads it.
CREATE TABLE IF NOT EXISTS retl.setl_conflict (
    id BIGINT NOT NULL AUTO_INCREMENT,
    pipeline VARCHAR(160) NOT NULL,
    found_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    schema_name VARCHAR(64) NOT NULL COMMENT 'of the table here',
    table_name VARCHAR(64) NOT NULL,
    row_key LONGTEXT NOT NULL COMMENT 'JSON: key column to value',
    column_names LONGTEXT NOT NULL COMMENT 'JSON: the columns that both sites have',
    policy VARCHAR(80) NOT NULL COMMENT 'home, or newest: column',
    winner VARCHAR(8) NOT NULL COMMENT 'source, target, both, or forgot',
    version BIGINT UNSIGNED NOT NULL COMMENT 'place of the change in the source',
    incoming LONGTEXT NULL COMMENT 'what the source said',
    held LONGTEXT NULL COMMENT 'what was here',
    result LONGTEXT NULL COMMENT 'what is here now',
    PRIMARY KEY (id),
    KEY by_pipeline (pipeline, id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What each pipeline took in of these rows and the other site has not passed yet, deleted rows
-- with the value that they had. A row is the memory of this site, and what the other is told.
-- Deleted when the other site has read it, which the opposite pipeline tells.
CREATE TABLE IF NOT EXISTS retl.setl_recent (
    pipeline VARCHAR(160) NOT NULL,
    number BIGINT UNSIGNED NOT NULL COMMENT 'grows with time',
    through BIGINT UNSIGNED NOT NULL COMMENT 'place in the source up to which all is taken in; 0: no news',
    passed BIGINT UNSIGNED NOT NULL COMMENT 'number at the other site up to which this one has read',
    schema_name VARCHAR(64) NOT NULL COMMENT 'of the table here',
    table_name VARCHAR(64) NOT NULL,
    row_key LONGTEXT NOT NULL COMMENT 'JSON: key column to value; empty for none',
    column_names LONGTEXT NOT NULL COMMENT 'JSON: the columns that both sites have',
    policy VARCHAR(250) NOT NULL COMMENT 'JSON: the policy as the pipeline has it',
    said LONGTEXT NULL COMMENT 'JSON: what the source did',
    kept LONGTEXT NULL COMMENT 'JSON: what this site has to remember',
    plain TINYINT NOT NULL COMMENT '1 if nothing is known that speaks against what is here',
    PRIMARY KEY (pipeline, number),
    KEY by_row (pipeline, row_key(100))
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- How far the other site has come with the changes of this one, as each pipeline has heard.
CREATE TABLE IF NOT EXISTS retl.setl_passed (
    pipeline VARCHAR(160) NOT NULL,
    seen BIGINT UNSIGNED NOT NULL COMMENT 'place in the binlog here, up to which the source took it in',
    number BIGINT UNSIGNED NOT NULL COMMENT 'the last that was given out in setl_recent',
    PRIMARY KEY (pipeline)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- How far each pipeline has applied the changes of these tables: what is delivered again must
-- not undo what was written here since.
CREATE TABLE IF NOT EXISTS retl.setl_applied (
    pipeline VARCHAR(160) NOT NULL,
    through BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (pipeline)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
