"""Schema changes of the source, done to the target as well (`ddl: pass`)."""
