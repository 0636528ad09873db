"""The Spark session of a process, its JVM, its Python workers, and what they are given."""
