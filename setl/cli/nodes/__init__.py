"""Commands that run a process of the cluster, and its configuration file."""
