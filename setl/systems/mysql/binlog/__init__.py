"""Reading a binlog: the connection, the stream, the search for a place, and the `Source`."""
