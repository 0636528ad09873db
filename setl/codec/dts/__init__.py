"""The DTS codec: Avro records of an Alibaba DTS subscription."""
