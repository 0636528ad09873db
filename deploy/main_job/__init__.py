"""The main job, end to end: two MySQL sites and a search index kept in step, through a failover."""
