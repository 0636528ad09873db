"""MySQL and MariaDB: connections, the binlog, the sink, its fence, DDL, checks and readers."""
