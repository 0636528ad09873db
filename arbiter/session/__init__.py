"""One session with a ZooKeeper server, through kazoo: what keeps it, watches it and ends it."""
