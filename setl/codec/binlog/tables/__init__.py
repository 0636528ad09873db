"""What the stream says of tables: their columns, keys and character sets."""
