"""The sink of MySQL and MariaDB: it decides how the changes of a load are written."""
