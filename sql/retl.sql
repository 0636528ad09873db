-- System tables that setl shares with Otter: marks, free gate and heartbeat.
--
-- Where: on every MySQL or MariaDB server that a channel reads from or writes to, before the
-- grants. Once, as an administrator; running it again changes nothing. The schema must be
-- written to the binlog (no binlog_ignore_db=retl, no SET sql_log_bin=0), since marks and
-- heartbeats work by being read back from it.
--
-- Works on MySQL 8.4 and 9, and on MariaDB 10.11 and later.

CREATE DATABASE IF NOT EXISTS retl DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- First row of every transaction that a two-way channel writes. Whoever reads the binlog
-- knows by it which channel the transaction came from, and does not send it back.
CREATE TABLE IF NOT EXISTS retl.retl_mark (
    ID BIGINT NOT NULL COMMENT 'number of the writer; each concurrent writer has its own',
    CHANNEL_ID INT NULL COMMENT 'mark_id of the channel that wrote the transaction',
    CHANNEL_INFO VARCHAR(128) NULL COMMENT 'free text; a suffix _SYNC drops the transaction in every channel',
    PRIMARY KEY (ID)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Free gate: a row written here by hand or by a tool names a row that is to be sent again, as the
-- source has it then.
CREATE TABLE IF NOT EXISTS retl.retl_buffer (
    ID BIGINT NOT NULL AUTO_INCREMENT,
    TABLE_ID INT NOT NULL COMMENT '0: FULL_NAME says which table',
    FULL_NAME VARCHAR(512) NULL COMMENT 'schema.table',
    TYPE CHAR(1) NOT NULL COMMENT 'I, U or D',
    PK_DATA VARCHAR(256) NOT NULL COMMENT 'values of the primary key, separated by CHAR(1)',
    GMT_CREATE TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    GMT_MODIFIED TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP,
    PRIMARY KEY (ID)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Heartbeat: one row for each pipeline that reads this server, updated every `heartbeat`
-- seconds. Without it nobody can tell an idle source from a dead one.
CREATE TABLE IF NOT EXISTS retl.xdual (
    ID BIGINT NOT NULL,
    X TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    PRIMARY KEY (ID)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
