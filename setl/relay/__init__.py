"""A relay: transactions of a binlog as DTS records in the partitions of a log."""
