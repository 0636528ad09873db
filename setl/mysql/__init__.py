"""How setl talks to MySQL and MariaDB servers; shared by every part that does."""
