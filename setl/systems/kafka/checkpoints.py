"""Checkpoints as offsets committed for the consumer group of a DTS subscription."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Protocol

from setl.channel.file import KafkaSource
from setl.errors import ConfigurationError, FatalError, FencedError, SetlError, TransientError
from setl.model.checkpoint import Checkpoint
from setl.model.position import KafkaPosition
from setl.select.checkpoints.note import CheckpointNote, Notes, missing
from setl.select.checkpoints.owner import Owner
from setl.select.checkpoints.succession import StoredCheckpoint, Succession
from setl.systems.kafka.commit import (
    Commit,
    foreign_checkpoint,
    metadata_of,
    read_commit,
)
from setl.systems.kafka.reader import TopicReader, open_reader
from setl.systems.kafka.record import TopicPartition

_LOG = logging.getLogger(__name__)

_RESET = "Reset the position: it was kept for another source"


class Committing(Protocol):
    """A membership of the group, which alone may commit while the group has members."""

    def commit(self, offset: int, metadata: str) -> None:
        """Commit as a member. Raises TransientError if it is none any more."""
        ...


class KafkaCheckpointStore:
    """Keeps a pipeline's checkpoint as the committed offset of the group `sid`.

    Kafka knows neither epochs nor compare-and-set: what is committed is read, compared, and
    then replaced. A leader that was replaced can still slip in between, once. That loses
    nothing: it had applied what it stores, and the target's fence keeps it from applying more
    (I2). If the position is further on than the successor's, the successor keeps it (`Succession`).
    If it is further back, the successor's next commit replaces it. A crash before that means that
    more is delivered again. While the group has members (`mode: subscribe`)
    Kafka takes commits of members of the current generation only.

    Commits of a group that is idle expire after a week or so (``offsets.retention.minutes``),
    so a note beside the leader lock says that there was one; without it, the loss would look like
    a first start (I7). The note knows the generation too, which foreign commits do not tell.

    Belongs to one thread, `close` to any. Keeps one connection.
    """

    def __init__(
        self,
        source: KafkaSource,
        notes: Notes,
        owner: Owner,
        *,
        generation: int = 1,
        member: Committing | None = None,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is connected yet.

        Args:
            source: brokers, account, topic, partition and group.
            notes: where the pipeline's note is kept.
            owner: whose checkpoint it is.
            generation: that the channel file asks for, for the first start after a foreign
                client.
            member: the membership to commit through; None commits as a client that is no
                member, which Kafka takes as long as the group has none.
            timeout: seconds to wait for any answer of a broker.
        """
        self._source = source
        self._owner = owner
        # What a foreign commit, which does not say it, counts as.
        self._generation = self._requested = generation
        self._member = member
        self._timeout = timeout
        self._partition = TopicPartition(source.topic, source.partition)
        self._position = f"{source.topic}[{source.partition}], group {source.sid}"
        self._notes = notes
        self._succession = Succession()
        self._known = False
        self._stored: Checkpoint | None = None  # by this object, last
        self._reader: TopicReader | None = None

    def load(self) -> Checkpoint | None:
        """See `CheckpointStore.load`.

        Raises:
            TransientError: the brokers or the arbiter do not answer.
            ConfigurationError: the account may not read the group's commits, or they are
                another pipeline's.
            FatalError: the commit is gone, or was not written by this version.
        """
        note = self._notes.read()
        if note is not None:
            self._generation, self._requested = note.generation, note.requested
        commit = self._committed()
        stored = self._read_commit(commit)
        self._succession.loaded(stored)
        self._known = True
        if self._has_gone_back(stored):
            return self._stored
        if commit is None and note is not None and note.store == "kafka":
            raise missing(
                note,
                f"no commit is found in {self._position}: it has expired, or the subscription is "
                f"new",
                "Commit the offset to the group again",
                self._owner.pipeline,
            ).at(**self._where())
        if stored is not None and note is not None and note.store == "kafka":
            self._check_generation(stored, note)
        if commit is not None and commit.checkpoint is None:
            _LOG.warning(
                "%s: going on where a foreign client of the group %s stood: offset %d, time %d",
                self._owner.pipeline,
                self._source.sid,
                commit.offset,
                commit.timestamp,
            )
        return stored.checkpoint if stored else None

    def age(self) -> float | None:
        """See `CheckpointStore.age`; no broker says when a group committed."""
        return None

    def _has_gone_back(self, in_kafka: StoredCheckpoint | None) -> bool:
        """Whether Kafka has lost what this object committed, and has an older commit.

        The topic may have lost records with it, such as by a backup, and hold others at their
        offsets by now. What was applied of it is known here, so that the source finds it out.
        """
        stored = self._stored
        if stored is None or in_kafka is None or in_kafka.checkpoint is None or not in_kafka.epoch:
            return False
        found = in_kafka.checkpoint
        if found.generation != stored.generation or found.order >= stored.order:
            return False
        _LOG.warning(
            "%s: Kafka has lost the commit of %s, and has one of %s: going on from the first",
            self._owner.pipeline,
            stored,
            found,
        )
        return True

    def _check_generation(self, stored: StoredCheckpoint, note: CheckpointNote) -> None:
        """Refuse what a former leader committed over a position that was set again since."""
        found = stored.checkpoint
        if found is not None and found.generation < note.generation:
            raise missing(
                note,
                f"what is found in {self._position} is {found} of generation {found.generation}, "
                f"not"
                f" of {note.generation}: a leader of before (epoch {stored.epoch}) committed late,"
                " over the position that was set since",
                "Set the position once more",
                self._owner.pipeline,
            ).at(**self._where())

    def store(self, checkpoint: Checkpoint, epoch: int) -> None:
        """See `CheckpointStore.store`.

        Raises:
            FencedError: a higher epoch has committed; nothing was stored.
            FatalError: it lies before the stored one, or does not fit into a commit.
            TransientError: the brokers do not answer, or the group has members and this is
                none of them; it may or may not be stored.
            ConfigurationError: the account may not commit.
        """
        if not self._known:
            self.load()
        stored = self._read_commit(self._committed())
        try:
            newest = self._succession.decide(stored, checkpoint, epoch)
        except (FatalError, FencedError) as error:
            if isinstance(error, FatalError) and self._member is not None and stored is not None:
                raise self._overtaken(stored) from error
            raise error.at(**self._where()) from None
        self._store(newest, epoch)
        self._notes.keep(newest, self._note(epoch))

    def replace(self, checkpoint: Checkpoint, epoch: int) -> None:
        """Commit over whatever is there, which may not be readable. Raises what `store` raises."""
        self._store(checkpoint, epoch)
        self._notes.replace(checkpoint, self._note(epoch))

    def _store(self, checkpoint: Checkpoint, epoch: int) -> None:
        resume = checkpoint.resume
        if (
            not isinstance(resume, KafkaPosition)
            or TopicPartition(resume.topic, resume.partition) != self._partition
        ):
            raise FatalError(f"{checkpoint} is no place in {self._position}", hint=_RESET)
        text = metadata_of(checkpoint, self._owner.pipeline, epoch)
        self._commit(resume.offset, text)
        self._succession.loaded(StoredCheckpoint(checkpoint, epoch))
        self._stored = checkpoint
        self._generation = checkpoint.generation
        self._requested = checkpoint.requested or checkpoint.generation

    def _note(self, epoch: int) -> CheckpointNote:
        return CheckpointNote.of(self._owner, epoch, "kafka", self._position)

    def close(self) -> None:
        """See `CheckpointStore.close`."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _read_commit(self, commit: Commit | None) -> StoredCheckpoint | None:
        if commit is None:
            return None
        if commit.checkpoint is not None:
            if commit.pipeline != self._owner.pipeline:
                raise ConfigurationError(
                    f"the group {self._source.sid} keeps the checkpoint of {commit.pipeline}",
                    hint="Two pipelines cannot keep theirs in one group: choose another"
                    " `checkpoint`, or a subscription with a group of its own",
                    pipeline=self._owner.pipeline,
                ).at(**self._where())
            return StoredCheckpoint(commit.checkpoint, commit.epoch)
        topic, partition = self._partition
        found = foreign_checkpoint(commit, topic, partition, self._generation, self._requested)
        return StoredCheckpoint(found, 0)

    def _committed(self) -> Commit | None:
        with self._asking() as reader:
            found = reader.committed(self._partition.partition)
        if found is None:
            return None
        try:
            return read_commit(*self._partition, *found)
        except FatalError as error:
            raise error.at(pipeline=self._owner.pipeline, **self._where()) from None

    def _commit(self, offset: int, metadata: str) -> None:
        with self._asking() as reader:
            if self._member is not None:
                self._member.commit(offset, metadata)
            else:
                reader.commit(self._partition.partition, offset, metadata)

    @contextmanager
    def _asking(self) -> Generator[TopicReader]:
        """The connection; dropped after an error, since the next broker may answer."""
        if self._reader is None:
            self._reader = open_reader(self._source, self._timeout, few=True)
        try:
            yield self._reader
        except SetlError as error:
            self.close()
            raise error.at(**self._where()) from error.__cause__

    def _overtaken(self, stored: StoredCheckpoint) -> TransientError:
        return TransientError(
            f"another member of the group {self._source.sid} has moved on to {stored.checkpoint}",
            pipeline=self._owner.pipeline,
        ).at(**self._where())

    def _where(self) -> dict[str, object]:
        return {
            "brokers": ",".join(self._source.brokers),
            "topic": self._source.topic,
            "partition": self._source.partition,
            "group": self._source.sid,
        }
