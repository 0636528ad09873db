"""A relay: transactions of a binlog as records in the partitions of a log."""
