"""How bulk requests are sent to a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from setl.systems.elasticsearch.client import ElasticEndpoint
from setl.systems.elasticsearch.mapping import GC_DELETES_SECONDS


@dataclass(frozen=True, slots=True)
class BulkSettings:
    """Where and how to write. Picklable and hashable: it travels with the tasks.

    Attributes:
        endpoint: the cluster.
        actions_per_request: actions in one bulk request at most.
        request_size: bytes above which a further action goes into the next request.
        requests_at_once: bulk requests of one task that are under way at the same time: the next
            one is made ready and travels while the cluster works on the one before.
        attempts: how often items are sent that the cluster is too busy for, and requests that
            get no answer, before the batch has to be tried again.
        backoff: seconds to wait before the second attempt; doubled before each further one.
        dead_letter_limit: open dead letters above which the pipeline stops; 0 stops it at the
            first faulty row.
        max_age: seconds after a leader has decided on a load in which it may be sent.
    """

    endpoint: ElasticEndpoint
    actions_per_request: int = 5_000
    request_size: int = 5 << 20
    requests_at_once: int = 2
    attempts: int = 5
    backoff: float = 0.2
    max_age: float = GC_DELETES_SECONDS / 2
    dead_letter_limit: int = 0
