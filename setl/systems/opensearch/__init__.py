"""OpenSearch: its client, and the target that it makes of `setl.systems.search_index`."""
