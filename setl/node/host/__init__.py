"""The process and its machine: memory, disk, threads, the service manager."""
