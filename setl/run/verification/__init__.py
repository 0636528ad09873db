"""Standing verification: tables are compared with their targets while the pipeline runs."""
