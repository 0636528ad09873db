"""What pipelines run on: Spark for those that load, nothing for relays."""
