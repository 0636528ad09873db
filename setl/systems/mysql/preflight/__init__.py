"""Checks of MySQL and MariaDB servers, before a channel starts."""
