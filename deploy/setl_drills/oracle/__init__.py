"""Random histories of random tables, with the server's own replica as the oracle (I11, I12, I21).

A source server runs random statements. Its binlog goes two ways: to a replica of its own, which
does not know setl, and through what a pipeline runs between binlog and rows (decoding,
compaction, dealing out, merging, the sink), in one process without Spark. Batches are cut
anywhere, tasks commit in any order, and what was applied is applied again. In the end

* setl's target holds what the source holds, or setl has stopped with an error;
* setl has not stopped where the replica went through, whose table has the same keys as setl's.

Everything follows from a seed; the comparison is a plain SELECT.
"""
