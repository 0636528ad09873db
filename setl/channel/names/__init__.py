"""Names of tables and documents: patterns, and templates of ids."""
