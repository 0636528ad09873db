"""Reading a binlog: the connection, the stream, the search for a position, and the `Source`."""
