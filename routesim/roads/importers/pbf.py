"""The PBF format of OpenStreetMap files, read blob by blob: ways and relations with a given tag, places of nodes.

Written for files nobody vouches for: every length is checked against what is there before it is followed,
and no more than a few blobs are held at a time. The format is described in OpenStreetMap's wiki under "PBF
Format"; the numbers below are the field numbers of its protocol-buffer messages.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from routesim.arrays import Bools, Floats, Ints
from routesim.errors import NetworkError
from routesim.roads.importers.blobs import exactly, holds_only_nodes, unpacked, walk
from routesim.roads.importers.restrictions import Member
from routesim.roads.importers.wire import (
    delta_lists,
    delta_values,
    dense_tagged,
    fields_of,
    plain_nodes,
    plain_values,
    relations_with,
    spans_of,
    ways_with,
)

# The numbers of the fields of a group.
_NODES, _DENSE, _WAYS, _RELATIONS = 1, 2, 3, 4
_MEMBERS = ("node", "way", "relation")

# Threads that unpack and take apart blobs, which Python lets run side by side; a file with few blobs needs none.
_MOST_THREADS = 4
_FEW_BLOBS = 4

Bytes = NDArray[np.uint8]
_Result = TypeVar("_Result")


class WayTable(NamedTuple):
    """Ways of one block that have the first of some keys, and at least two nodes.

    `values[i, c]` is the number of the text that way `i` has for key `c`, -1 where it has none.
    """

    block: _Block
    ids: Ints
    values: Ints
    counts: Ints
    nodes: Ints

    def said(self, column: int, read: Callable[[str], int]) -> NDArray[np.int8]:
        """Return what `read` says of each way's value of a key, 0 where it has none; it is asked once a text."""
        values = self.values[:, column]
        occurs = np.zeros(len(self.block.texts) + 1, dtype=np.bool_)
        occurs[values] = True  # -1 is the last
        says = np.zeros(len(occurs), dtype=np.int8)
        for number in np.flatnonzero(occurs[:-1]).tolist():
            says[number] = read(self.block.text(number))
        return says[values]

    def refs(self, chosen: Bools) -> Ints:
        """Return the ids of the nodes of some ways, one after the other."""
        return delta_lists(self.block.buffer, self.nodes[chosen], int(self.counts[chosen].sum()))


class PbfFile:
    """A PBF file whose frame has been walked through and whose stated sizes stay within `most_bytes`."""

    def __init__(self, file: Path, max_bytes: int | None) -> None:
        self.file = file
        self.blobs = list(walk(file, max_bytes))
        # Which blobs hold nodes is learnt while ways are read, so that the others need not be opened twice.
        self._node_blobs: list[tuple[int, int]] | None = None

    def read_ways(
        self,
        keys: Sequence[str],
        take: Callable[[WayTable], None],
        relation: str,
        take_relation: Callable[[Mapping[str, str], list[Member]], None],
    ) -> None:
        """Hand over the ways that have the first of these keys, block by block in the file's order.

        Relations of the `type` given are handed over one by one, as tags and members: each of a kind, with id and role.
        """
        node_blobs = []

        def look(at: int, size: int) -> tuple[bool, list[WayTable], list[tuple[dict[str, str], list[Member]]]]:
            blob = self._read(at, size)
            if holds_only_nodes(blob):
                return True, [], []
            block = _Block(unpacked(blob))
            return block.has_nodes, list(block.ways(keys)), list(block.relations(relation))

        for place, (has_nodes, tables, relations) in self._in_order(self.blobs, look):
            if has_nodes:
                node_blobs.append(place)
            try:
                for table in tables:
                    take(table)
            except (ValueError, IndexError, UnicodeDecodeError) as error:
                raise self._damaged(place[0], error) from None
            for tags, members in relations:
                take_relation(tags, members)
        self._node_blobs = node_blobs

    def places(self, ids: Ints, tag: tuple[str, str]) -> tuple[Floats, Floats, Bools]:
        """Return longitude and latitude of nodes, NaN where not found, and which have the tag; `ids` ascend."""
        lon, lat = np.full(len(ids), np.nan), np.full(len(ids), np.nan)
        tagged = np.zeros(len(ids), dtype=np.bool_)

        def look(at: int, size: int) -> list[tuple[Ints, Floats, Floats, Bools]]:
            block = _Block(unpacked(self._read(at, size)))
            found = []
            for node_ids, x, y, has_tag in block.nodes(tag):
                slot = np.minimum(np.searchsorted(ids, node_ids), len(ids) - 1)
                wanted = ids[slot] == node_ids
                found.append((slot[wanted], block.degrees(x[wanted]), block.degrees(y[wanted], 1), has_tag[wanted]))
            return found

        for _, found in self._in_order(self.blobs if self._node_blobs is None else self._node_blobs, look):
            for slot, x, y, has_tag in found:
                lon[slot], lat[slot], tagged[slot] = x, y, has_tag
        return lon, lat, tagged

    def _in_order(
        self, blobs: Sequence[tuple[int, int]], look: Callable[[int, int], _Result]
    ) -> Iterator[tuple[tuple[int, int], _Result]]:
        """Yield what is found in each blob, in the order of the file; threads look a few blobs ahead."""
        if len(blobs) <= _FEW_BLOBS:
            yield from ((place, self._found(place, look)) for place in blobs)
            return
        threads = min(_MOST_THREADS, os.cpu_count() or 1)
        waiting: deque[tuple[tuple[int, int], Future[_Result]]] = deque()
        with ThreadPoolExecutor(threads) as pool:
            try:
                for place in blobs:
                    waiting.append((place, pool.submit(self._found, place, look)))
                    if len(waiting) > 2 * threads:
                        done, future = waiting.popleft()
                        yield done, future.result()
                while waiting:
                    done, future = waiting.popleft()
                    yield done, future.result()
            finally:
                for _, future in waiting:
                    future.cancel()

    def _found(self, place: tuple[int, int], look: Callable[[int, int], _Result]) -> _Result:
        try:
            return look(*place)
        except (ValueError, IndexError, UnicodeDecodeError) as error:
            raise self._damaged(place[0], error) from None

    def _read(self, at: int, size: int) -> bytes:
        try:
            with self.file.open("rb") as stream:
                stream.seek(at)
                return exactly(stream, size, f"{self.file} byte {at}")
        except OSError as error:
            raise NetworkError(f"cannot read {self.file}: {error}") from None

    def _damaged(self, at: int, error: Exception) -> NetworkError:
        if isinstance(error, NetworkError):
            return error
        return NetworkError(f"{self.file} byte {at}: the blob there is damaged: {error}")


class _Block:
    """One PrimitiveBlock: a table of texts, and groups of nodes or ways that point into it."""

    def __init__(self, content: bytes) -> None:
        self.buffer: Bytes = np.frombuffer(content, dtype=np.uint8)
        self.content = content
        self.texts: NDArray[np.int64] = np.empty((0, 2), dtype=np.int64)
        groups: list[tuple[int, int]] = []
        self.granularity, self.offsets = 100, [0, 0]
        table_seen = False
        for number, start, end in fields_of(self.buffer, 0, len(content)).tolist():
            # A plain number is (value, -1) and a list ends at 0 or later.
            if number in (17, 19, 20) and end >= 0:
                raise ValueError(f"its field {number} must be a number, not a list")
            if number == 1:
                if table_seen:
                    raise ValueError("it has more than one table of texts")
                table_seen = True
                table = fields_of(self.buffer, start, end)
                self.texts = np.ascontiguousarray(table[table[:, 0] == 1, 1:])
                if (self.texts[:, 1] < 0).any():
                    raise ValueError("its table of texts holds a number")
            elif number == 2:
                groups.append((start, end))
            elif number == 17:
                self.granularity = start
            elif number in (19, 20):  # 19 is latitude
                self.offsets[20 - number] = start
        if not 1 <= self.granularity <= 10**9:
            raise ValueError(f"granularity must be from 1 to 1e9, got {self.granularity}")
        if max(map(abs, self.offsets)) > 360 * 10**9:
            raise ValueError("the offset of its coordinates is beyond the Earth")
        self.spans = [spans_of(self.buffer, *group) for group in groups]
        self.kinds = [set(spans[:, 0].tolist()) for spans in self.spans]

    @property
    def has_nodes(self) -> bool:
        return any(kinds & {_NODES, _DENSE} for kinds in self.kinds)

    def ways(self, keys: Sequence[str]) -> Iterator[WayTable]:
        if not any(_WAYS in kinds for kinds in self.kinds):
            return
        columns = np.full(len(self.texts), -1, dtype=np.int64)
        for column, key in enumerate(keys):
            columns[self._positions(key.encode())] = column
        if not (columns == 0).any():
            return
        for spans, kinds in zip(self.spans, self.kinds, strict=True):
            if _WAYS in kinds:
                ways = np.ascontiguousarray(spans[spans[:, 0] == _WAYS, 1:])
                ids, values, counts, nodes = ways_with(self.buffer, ways, columns, len(keys))
                long = counts > 1
                yield WayTable(self, ids[long], values[long], counts[long], nodes[long])

    def relations(self, kind: str) -> Iterator[tuple[dict[str, str], list[Member]]]:
        """Yield tags and members of the relations whose `type` is `kind`."""
        key, value = self._position(b"type"), self._position(kind.encode())
        if key < 0 or value < 0:
            return
        for spans, kinds in zip(self.spans, self.kinds, strict=True):
            if _RELATIONS in kinds:
                relations = np.ascontiguousarray(spans[spans[:, 0] == _RELATIONS, 1:])
                for start, end in relations[relations_with(self.buffer, relations, key, value)].tolist():
                    yield self._relation(start, end)

    def _relation(self, start: int, end: int) -> tuple[dict[str, str], list[Member]]:
        lists: dict[int, list[int]] = {}
        for number, first, last in fields_of(self.buffer, start, end).tolist():
            if number in (2, 3, 8, 9, 10):
                if number in lists:
                    raise ValueError("a relation must state its tags and members in one list each")
                read = delta_values if number == 9 else plain_values
                lists[number] = read(self.buffer, first, last).tolist()
        keys, values, roles, ids, kinds = (lists.get(number, []) for number in (2, 3, 8, 9, 10))
        if len(keys) != len(values) or not len(roles) == len(ids) == len(kinds):
            raise ValueError("a relation has not as many values as keys, or not as many roles as members")
        if kinds and not 0 <= min(kinds) <= max(kinds) < len(_MEMBERS):
            raise ValueError("a relation has a member that is neither node, way nor relation")
        texts = self._texts((*keys, *values, *roles))
        tags = {texts[k]: texts[v] for k, v in zip(keys, values, strict=True)}
        members = [(_MEMBERS[k], ref, texts[role]) for k, ref, role in zip(kinds, ids, roles, strict=True)]
        return tags, members

    def _texts(self, numbers: Sequence[int]) -> dict[int, str]:
        if numbers and not 0 <= min(numbers) <= max(numbers) < len(self.texts):
            raise ValueError("a tag or a role points to a text that is not there")
        return {number: self.text(number) for number in numbers}

    def nodes(self, tag: tuple[str, str]) -> Iterator[tuple[Ints, Ints, Ints, Bools]]:
        """Yield ids, longitudes and latitudes in units of the granularity, and which have the tag."""
        key, value = (self._position(text.encode()) for text in tag)
        if value < 0:
            key = -1
        for spans, kinds in zip(self.spans, self.kinds, strict=True):
            if _NODES in kinds:
                rows = plain_nodes(self.buffer, np.ascontiguousarray(spans[spans[:, 0] == _NODES, 1:]), key, value)
                yield rows[:, 0], rows[:, 2], rows[:, 1], rows[:, 3] > 0
            for start, end in spans[spans[:, 0] == _DENSE, 1:].tolist():
                columns: dict[int, Ints] = {}
                tags = (0, 0)
                for number, first, last in fields_of(self.buffer, start, end).tolist():
                    if number in (1, 8, 9):
                        if number in columns:
                            raise ValueError("a group of nodes states a column twice")
                        columns[number] = delta_values(self.buffer, first, last)
                    elif number == 10 and key >= 0:
                        tags = first, last
                if columns:
                    ids, y, x = (columns.get(number, np.empty(0, dtype=np.int64)) for number in (1, 8, 9))
                    if not len(ids) == len(y) == len(x):
                        raise ValueError(f"{len(ids)} nodes have {len(y)} latitudes and {len(x)} longitudes")
                    yield ids, x, y, dense_tagged(self.buffer, *tags, len(ids), key, value)

    def degrees(self, values: Ints, axis: int = 0) -> Floats:
        limit = 360 * 10**9 // self.granularity
        if len(values) and (values.max() > limit or values.min() < -limit):
            raise ValueError("a coordinate is beyond the Earth")
        nano = self.offsets[axis] + self.granularity * values
        # On OpenStreetMap's own grid the division by 1e7 gives the very number other readers give.
        return np.where(nano % 100 == 0, (nano // 100) / 1e7, nano / 1e9)

    def _position(self, text: bytes) -> int:
        return next(iter(self._positions(text)), -1)

    def _positions(self, text: bytes) -> list[int]:
        same = np.flatnonzero(self.texts[:, 1] - self.texts[:, 0] == len(text)).tolist()
        return [i for i in same if self.content[self.texts[i, 0] : self.texts[i, 1]] == text]

    @cached_property
    def _spans(self) -> list[list[int]]:
        spans: list[list[int]] = self.texts.tolist()
        return spans

    def text(self, i: int) -> str:
        start, end = self._spans[i]
        return self.content[start:end].decode("utf-8")
