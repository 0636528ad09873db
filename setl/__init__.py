"""setl keeps databases in step: MySQL changes to MySQL or Elasticsearch, one way or both."""

__version__ = "0.1.0"
