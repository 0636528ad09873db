"""Statements that write rows into MySQL and MariaDB, and what they need."""
