"""Which settings of librdkafka a channel file may give under `kafka`.

A list of what is allowed, since librdkafka has settings that load code into the node
(`plugin.library.paths`, `ssl.engine.location`), run commands (`sasl.kerberos.kinit.cmd`) or send
files away (`sasl.oauthbearer.assertion.jwt.template.file`), and each release may bring more.

Source: https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md
"""

from __future__ import annotations

from typing import Final

OWN_OF_CONSUMER: Final = frozenset({
    "auto_offset_reset", "bootstrap_servers", "enable_auto_commit", "enable_auto_offset_store",
    "enable_partition_eof", "group_id", "group_instance_id", "group_protocol", "key_deserializer",
    "log_connection_close", "log_level", "max_poll_records", "metadata_broker_list",
    "partition_assignment_strategy", "value_deserializer",
})  # fmt: skip
"""What may not be passed to the consumer: it has fields of its own, or would lose the position.

The client's log tells of a lost connection.
"""

OWN_OF_PRODUCER: Final = frozenset({
    "acks", "bootstrap_servers", "delivery_timeout_ms", "enable_gapless_guarantee",
    "enable_idempotence", "max_in_flight", "max_in_flight_requests_per_connection",
    "message_send_max_retries", "message_timeout_ms", "queuing_strategy", "request_required_acks",
    "retries", "transactional_id",
})  # fmt: skip
"""What may not be passed to the producer: it would lose records, or their order."""

_OF_BOTH: Final = """
    allow.auto.create.topics api.version.fallback.ms api.version.request
    api.version.request.timeout.ms broker.address.family broker.address.ttl
    broker.version.fallback client.dns.lookup client.id client.rack connections.max.idle.ms debug
    enable.metrics.push enable.ssl.certificate.verification message.copy.max.bytes
    message.max.bytes metadata.max.age.ms metadata.recovery.rebootstrap.trigger.ms
    metadata.recovery.strategy receive.message.max.bytes reconnect.backoff.max.ms
    reconnect.backoff.ms retry.backoff.max.ms retry.backoff.ms security.protocol
    socket.connection.setup.timeout.ms socket.keepalive.enable socket.max.fails
    socket.nagle.disable socket.receive.buffer.bytes socket.send.buffer.bytes socket.timeout.ms
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.interval.ms
    topic.metadata.refresh.interval.ms topic.metadata.refresh.sparse

    sasl.mechanism sasl.mechanisms sasl.username sasl.password
    sasl.kerberos.keytab sasl.kerberos.min.time.before.relogin sasl.kerberos.principal
    sasl.kerberos.service.name
    enable.sasl.oauthbearer.unsecure.jwt sasl.oauthbearer.client.id
    sasl.oauthbearer.client.secret sasl.oauthbearer.config sasl.oauthbearer.extensions
    sasl.oauthbearer.method sasl.oauthbearer.scope sasl.oauthbearer.token.endpoint.url

    ssl.ca.location ssl.ca.pem ssl.certificate.location ssl.certificate.pem ssl.cipher.suites
    ssl.crl.location ssl.curves.list ssl.endpoint.identification.algorithm ssl.key.location
    ssl.key.password ssl.key.pem ssl.keystore.location ssl.keystore.password ssl.sigalgs.list
"""
_OF_CONSUMERS: Final = """
    check.crcs coordinator.query.interval.ms fetch.error.backoff.ms fetch.max.bytes
    fetch.message.max.bytes fetch.min.bytes fetch.queue.backoff.ms fetch.wait.max.ms
    heartbeat.interval.ms isolation.level max.partition.fetch.bytes max.poll.interval.ms
    queued.max.messages.kbytes queued.min.messages session.timeout.ms
"""
_OF_PRODUCERS: Final = """
    batch.num.messages batch.size compression.codec compression.level compression.type linger.ms
    partitioner queue.buffering.backpressure.threshold queue.buffering.max.kbytes
    queue.buffering.max.messages queue.buffering.max.ms request.timeout.ms
    sticky.partitioning.linger.ms transaction.timeout.ms
"""
# Of kafka-python, which sources used to be read with; see `setl.systems.kafka.settings`.
_OF_EARLIER_FILES: Final = """
    fetch_max_wait_ms receive_buffer_bytes request_timeout_ms sasl_plain_password
    sasl_plain_username send_buffer_bytes ssl_cafile ssl_certfile ssl_check_hostname ssl_ciphers
    ssl_crlfile ssl_keyfile ssl_password
"""


def _underscored(names: str) -> frozenset[str]:
    return frozenset(name.replace(".", "_") for name in names.split())


OF_KAFKA_PYTHON: Final = _underscored(_OF_EARLIER_FILES)
"""Those that librdkafka calls by other names."""

CONSUMER_SETTINGS: Final = _underscored(_OF_BOTH + _OF_CONSUMERS) | OF_KAFKA_PYTHON
"""What may be passed to the consumer, with underscores."""

PRODUCER_SETTINGS: Final = _underscored(_OF_BOTH + _OF_PRODUCERS)
"""What may be passed to the producer, with underscores."""

NOT_ALLOWED: Final = (
    "is none of librdkafka's settings that a channel file may give: those that load code, run"
    " commands or read further files are left out"
)
