"""Load into MySQL and MariaDB."""
