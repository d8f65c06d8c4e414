"""The topology of a streams group: how many tasks its subtopologies have, and which topics it needs.

Rules kept here, as Kafka's InternalTopicManager and its helpers have them:

- A subtopology has as many tasks as the source topic with most partitions has.
- A repartition topic has the partitions that the topology says, or those of the largest source topic of the
  subtopologies that write to it. Topics that are read together (``copartition_groups``) have the same number.
- A changelog has a partition for each task.
- Internal topics are made when all source topics are there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kwire.protocol.error_codes import ErrorCode
from kwire.testing.broker.consumers import compiled
from kwire.testing.broker.logs import RefusedError

if TYPE_CHECKING:
    from kwire.testing.broker.cluster import Cluster

__all__ = ["Internal", "Subtopology", "Topology"]

_MISSING_SOURCES, _WRONG_PARTITIONS, _MISSING_INTERNAL = 1, 2, 3
_MOST_TEXT: Final = 1 << 20
"""Characters of all names in a topology."""
_MOST_TASKS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Internal:
    """A repartition topic, or a changelog. ``partitions`` is 0 where the topology does not say it."""

    name: str
    partitions: int
    replication: int
    configs: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, one: Any) -> Internal:
        """From a ``TopicInfo`` of a request."""
        configs = tuple((entry.key, entry.value) for entry in one.topic_configs)
        return cls(one.name, one.partitions, one.replication_factor, configs)


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of a topology, whose tasks are alike."""

    id: str
    sources: tuple[str, ...]
    patterns: tuple[str, ...]
    sinks: tuple[str, ...]
    """Repartition topics that it writes to."""
    repartitions: tuple[Internal, ...]
    """Repartition topics that it reads."""
    changelogs: tuple[Internal, ...]
    together: tuple[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]], ...]
    """Topics that are read together: indexes into ``sources``, ``patterns`` and ``repartitions``."""


@dataclass(frozen=True, slots=True)
class Topology:
    """What all members of a group run."""

    epoch: int
    parts: tuple[Subtopology, ...]

    @classmethod
    def of(cls, given: Any) -> Topology | int:
        """From a request. Gives an error code for one that is not right."""
        parts = tuple(
            Subtopology(
                one.subtopology_id,
                tuple(one.source_topics),
                tuple(one.source_topic_regex),
                tuple(one.repartition_sink_topics),
                tuple(Internal.of(each) for each in one.repartition_source_topics),
                tuple(Internal.of(each) for each in one.state_changelog_topics),
                tuple(
                    (tuple(each.source_topics), tuple(each.source_topic_regex), tuple(each.repartition_source_topics))
                    for each in one.copartition_groups
                ),
            )
            for one in given.subtopologies
        )
        made = cls(given.epoch, parts)
        if len({one.id for one in parts}) != len(parts) or made._size() > _MOST_TEXT or not made._right():
            return ErrorCode.STREAMS_INVALID_TOPOLOGY
        return made

    def _size(self) -> int:
        texts = [
            text
            for one in self.parts
            for text in (one.id, *one.sources, *one.patterns, *one.sinks)
        ]  # fmt: skip
        for one in self.parts:
            for each in (*one.repartitions, *one.changelogs):
                texts += [each.name, *(word for entry in each.configs for word in entry)]
        return sum(map(len, texts)) + 16 * len(texts)

    def _right(self) -> bool:
        for one in self.parts:
            for pattern in one.patterns:
                try:
                    compiled(pattern)
                except ValueError:
                    return False
            lists = (one.sources, one.patterns, one.repartitions)
            for group in one.together:
                if any(not 0 <= at < len(some) for numbers, some in zip(group, lists, strict=True) for at in numbers):
                    return False
        return True

    @property
    def stateful(self) -> set[str]:
        """The subtopologies whose tasks have state."""
        return {one.id for one in self.parts if one.changelogs}

    def topics(self, part: Subtopology, cluster: Cluster) -> list[str]:
        """The topics that a subtopology reads, as far as they are there."""
        names = [*part.sources, *(one.name for one in part.repartitions), *_matching(part, cluster)]
        return [name for name in dict.fromkeys(names) if name in cluster.topics]

    def tasks(self, cluster: Cluster) -> tuple[dict[str, int], list[tuple[int, str]]]:
        """How many tasks each subtopology has, and what is wrong: code and text. Makes internal topics."""
        internal = {one.name for part in self.parts for one in (*part.repartitions, *part.changelogs)}
        sources = {name: None for part in self.parts for name in part.sources if name not in internal}
        missing = [name for name in sources if name not in cluster.topics]
        matched = all(not part.patterns or part.sources or _matching(part, cluster) for part in self.parts)
        if missing or not matched:
            named = ", ".join(missing) or "of a regular expression"
            return {}, [(_MISSING_SOURCES, f"Source topics {named} are missing.")]
        sizes = {name: len(cluster.topics[name].logs) for name in sources}
        wrong = self._size_repartitions(cluster, sizes)
        if wrong:
            return {}, [(_WRONG_PARTITIONS, wrong)]
        counts = {part.id: max(self._sizes(part, cluster, sizes), default=0) for part in self.parts}
        if sum(counts.values()) > _MOST_TASKS:
            return {}, [(_WRONG_PARTITIONS, f"There are more than {_MOST_TASKS} tasks.")]
        for part in self.parts:
            for one in part.changelogs:
                sizes.setdefault(one.name, one.partitions or counts[part.id])
        failed = [name for name in _made(self, cluster, sizes) if name]
        if failed:
            return {}, [(_MISSING_INTERNAL, f"Internal topics {', '.join(failed)} cannot be created.")]
        return counts, []

    @staticmethod
    def _sizes(part: Subtopology, cluster: Cluster, sizes: dict[str, int]) -> list[int]:
        names = [*part.sources, *(one.name for one in part.repartitions)]
        matched = [len(cluster.topics[name].logs) for name in _matching(part, cluster)]
        return [sizes[name] for name in names if name in sizes] + matched

    def _size_repartitions(self, cluster: Cluster, sizes: dict[str, int]) -> str:
        """Find the partitions of repartition topics. Gives what is wrong."""
        wanted = {one.name: one for part in self.parts for one in part.repartitions}
        sizes.update({name: one.partitions for name, one in wanted.items() if one.partitions > 0})
        open_ = [name for name in wanted if name not in sizes]
        while open_:
            found = {}
            for name in open_:
                writers = [part for part in self.parts if name in part.sinks]
                reads = [one.name for part in writers for one in part.repartitions]
                if writers and all(one in sizes for one in reads):
                    found[name] = max(
                        (size for part in writers for size in self._sizes(part, cluster, sizes)), default=0
                    )
            found = {name: size for name, size in found.items() if size}
            if not found:
                return f"The partitions of {', '.join(open_)} cannot be found."
            sizes.update(found)
            open_ = [name for name in open_ if name not in sizes]
        return self._together(cluster, sizes, {name for name, one in wanted.items() if not one.partitions})

    def _together(self, cluster: Cluster, sizes: dict[str, int], free: set[str]) -> str:
        for part in self.parts:
            matched = _matching(part, cluster)
            for sources, patterns, repartitions in part.together:
                names = [part.sources[at] for at in sources]
                # The topics of one expression cannot be told from those of another here: all of them count.
                names += matched if patterns else []
                ours = [part.repartitions[at].name for at in repartitions]
                fixed = [name for name in (*names, *ours) if name not in free]
                counts = {sizes.get(name) or len(cluster.topics[name].logs) for name in fixed}
                if len(counts) > 1:
                    return f"Topics {', '.join(fixed)} are read together, and have other numbers of partitions."
                size = counts.pop() if counts else max((sizes[name] for name in ours), default=0)
                sizes.update({name: size for name in ours if name in free})
        return ""


def _matching(part: Subtopology, cluster: Cluster) -> list[str]:
    patterns = [compiled(one) for one in part.patterns]
    return [name for name in cluster.topics if any(one.fullmatch(name) for one in patterns)]


def _made(topology: Topology, cluster: Cluster, sizes: dict[str, int]) -> list[str]:
    """Make the internal topics that are missing. Gives the names of those that cannot be made."""
    failed = []
    for part in topology.parts:
        for one in (*part.repartitions, *part.changelogs):
            if one.name not in cluster.topics:
                try:
                    copies = one.replication if one.replication > 0 else -1
                    cluster.create_topic(one.name, sizes[one.name], copies, dict(one.configs))
                except RefusedError:
                    failed.append(one.name)
    return failed
