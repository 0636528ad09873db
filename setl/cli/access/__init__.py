"""How a command reaches the cluster, Spark and user code, and the options for that."""
