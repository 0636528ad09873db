"""The binlog codec: MySQL and MariaDB replication events."""
