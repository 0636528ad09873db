# Read by the entry point of the MySQL image: setl's account, with the privileges of
# sql/grants-source.sql and sql/grants-target.sql.
quoted=${SHOP_PASSWORD//\\/\\\\}
quoted=${quoted//\'/\'\'}
docker_process_sql <<STATEMENTS
CREATE USER IF NOT EXISTS 'retl'@'%' IDENTIFIED BY '$quoted';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'retl'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE, TRIGGER ON shop.* TO 'retl'@'%';
GRANT SELECT, INSERT, UPDATE, DELETE ON retl.* TO 'retl'@'%';
STATEMENTS
