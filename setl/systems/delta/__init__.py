"""Delta tables in a folder or in S3, through delta-rs, as a target."""
