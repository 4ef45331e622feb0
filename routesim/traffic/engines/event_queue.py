"""A queue of events in order of (time, serial) whose cost an event hardly depends on how many are pending.

A heap of a million events misses the cache at every level. Here only the events of the near future are in a heap, a
small one; the others wait in buckets of time, unsorted, and are read and written in chunks of neighbouring memory.

An event's key is its time, a float of at least 0, read as an integer: the order is the same. A key has eight digits of
eight bits. Times taken off the queue never fall, so let `LAST` be a number that all pending keys have reached: an
event waits at the level of the highest digit in which its key differs from LAST, in the bucket of that digit. When
the heap is empty, the first bucket of the lowest level in use is poured into it, and LAST is where that bucket begins;
too full a bucket is first dealt out over the level below. So an event is moved once per level, at most eight times, and
in practice about as often as the logarithm to base 256 of the number pending.
"""

from typing import NamedTuple

import numpy as np

from routesim.arrays import Ints
from routesim.kernels import lean_kernel

LEVELS, DIGITS, BITS = 8, 256, 8
CHUNK = 16  # events that lie side by side
FEW, MANY = 96, 384  # a bucket of up to FEW is poured into the heap; a heap above MANY gives its later events back
NEVER = np.iinfo(np.int64).max  # above every key
# Positions in the book: events in the heap, LAST, the lowest level in use, the last key that belongs into the heap,
# the first free chunk, chunks ever used; then the events that wait at each level and in each bucket, and the chunk of
# each bucket that is not full yet, which leads to the others.
NEAR, LAST, LEVEL, LIMIT, FREE, USED, WAITING = range(7)
HELD = WAITING + LEVELS
NEWEST = HELD + LEVELS * DIGITS


class EventQueue(NamedTuple):
    """Rows of (key, tag); equal keys go by tag."""

    near: Ints  # a heap of four children a node
    far: Ints  # chunks of CHUNK rows
    after: Ints  # the next chunk of the same bucket, or the next free one; -1 after the last
    book: Ints


def empty_queue(most: int) -> EventQueue:
    """Return a queue that has room for `most` events; memory is used only as they come."""
    buckets = LEVELS * DIGITS
    chunks = most // CHUNK + buckets + 1  # every bucket may have one chunk that is not full
    book = np.zeros(NEWEST + buckets, dtype=np.int64)
    book[LIMIT] = book[FREE] = -1
    book[NEWEST:] = -1
    return EventQueue(
        np.empty((most, 2), dtype=np.int64),
        np.empty((chunks * CHUNK, 2), dtype=np.int64),
        np.empty(chunks, dtype=np.int64),
        book,
    )


@lean_kernel
def key_of(time: float) -> int:
    """Return the key of a time of at least 0."""
    return int(np.float64(time + 0.0).view(np.int64))  # adding 0.0 makes -0.0 plain 0.0


@lean_kernel
def time_of(key: int) -> float:
    """Return the time of a key."""
    return float(np.int64(key).view(np.float64))


@lean_kernel
def _sift_down(near: Ints, key: int, tag: int, size: int) -> None:
    """Put an event into a heap of `size` whose top is free."""
    slot, child = 0, 1
    while child < size:
        best, least = child, near[child, 0]
        for other in range(child + 1, min(child + 4, size)):
            if near[other, 0] <= least and (near[other, 0] < least or near[other, 1] < near[best, 1]):
                best, least = other, near[other, 0]
        if least >= key and (least > key or near[best, 1] > tag):
            break
        near[slot, 0], near[slot, 1] = least, near[best, 1]
        slot, child = best, 4 * best + 1
    near[slot, 0], near[slot, 1] = key, tag


@lean_kernel
def _sift_up(near: Ints, key: int, tag: int, slot: int) -> None:
    """Add an event to a heap whose first free place is `slot`."""
    while slot > 0:
        above = (slot - 1) // 4
        if near[above, 0] < key or (near[above, 0] == key and near[above, 1] < tag):
            break
        near[slot, 0], near[slot, 1] = near[above, 0], near[above, 1]
        slot = above
    near[slot, 0], near[slot, 1] = key, tag


@lean_kernel
def _put(queue: EventQueue, level: int, key: int, tag: int) -> None:
    """Add an event to its bucket at a level."""
    far, after, book = queue.far, queue.after, queue.book
    bucket = level * DIGITS + ((key >> (level * BITS)) & (DIGITS - 1))
    place = book[HELD + bucket] & (CHUNK - 1)
    if place == 0:
        chunk = book[FREE]
        if chunk >= 0:
            book[FREE] = after[chunk]
        else:
            chunk = book[USED]
            book[USED] += 1
        after[chunk] = book[NEWEST + bucket]
        book[NEWEST + bucket] = chunk
    row = book[NEWEST + bucket] * CHUNK + place
    far[row, 0], far[row, 1] = key, tag
    book[HELD + bucket] += 1
    book[WAITING + level] += 1


@lean_kernel
def _wait(queue: EventQueue, key: int, tag: int) -> None:
    """Add an event above LIMIT to the bucket it waits in."""
    book = queue.book
    level = book[LEVEL]
    above = ((key ^ book[LAST]) >> (level * BITS)) >> BITS
    while above > 0:
        above >>= BITS
        level += 1
    _put(queue, level, key, tag)


@lean_kernel
def _thin(queue: EventQueue, now: int) -> None:
    """Give the later part of a crowded heap back to the buckets; `now` is the key of the event that is happening."""
    near, book = queue.near, queue.book
    while book[NEAR] > MANY and book[LEVEL] > 0:
        book[LEVEL] -= 1
        level, size = book[LEVEL], book[NEAR]
        book[LAST] = (now >> (level * BITS)) << (level * BITS)
        book[LIMIT] = book[LAST] + ((1 << (level * BITS)) - 1)
        kept = 0
        for row in range(size):
            key, tag = near[row, 0], near[row, 1]
            if key <= book[LIMIT]:
                _sift_up(near, key, tag, kept)
                kept += 1
            else:
                _wait(queue, key, tag)
        book[NEAR] = kept


@lean_kernel
def add(queue: EventQueue, key: int, tag: int, now: int) -> None:
    """Add an event; `now` is the key of the event that is happening, which is not above `key`."""
    near, book = queue.near, queue.book
    if key <= book[LIMIT]:
        _sift_up(near, key, tag, book[NEAR])
        book[NEAR] += 1
        if book[NEAR] > MANY:
            _thin(queue, now)
        return
    _wait(queue, key, tag)


@lean_kernel
def take(queue: EventQueue) -> None:
    """Take the first event off the heap."""
    near, book = queue.near, queue.book
    book[NEAR] -= 1
    last = book[NEAR]
    if last > 0:
        _sift_down(near, near[last, 0], near[last, 1], last)


@lean_kernel
def replace(queue: EventQueue, key: int, tag: int, now: int) -> None:
    """Take the first event off the heap and add another."""
    near, book = queue.near, queue.book
    if key <= book[LIMIT]:
        _sift_down(near, key, tag, book[NEAR])
    else:
        take(queue)
        add(queue, key, tag, now)


@lean_kernel
def advance(queue: EventQueue, before: int) -> None:
    """Fill an empty heap with the first events that wait, unless none of them has a key below `before`."""
    near, far, after, book = queue.near, queue.far, queue.after, queue.book
    while True:
        level = book[LEVEL]
        while level < LEVELS and book[WAITING + level] == 0:
            level += 1
        if level == LEVELS:
            return
        shift = level * BITS
        bucket = level * DIGITS + ((book[LAST] >> shift) & (DIGITS - 1))
        while book[HELD + bucket] == 0:
            bucket += 1
        begins = ((((book[LAST] >> shift) >> BITS) << BITS) + (bucket - level * DIGITS)) << shift
        if before <= begins:
            return
        # Small buckets that follow each other are poured together, for a look ahead over them all.
        pours = book[HELD + bucket] <= FEW or level == 0
        book[LAST] = begins
        book[LEVEL] = level if pours else level - 1
        book[LIMIT] = begins - 1
        size, end = 0, (level + 1) * DIGITS
        while True:
            held, chunk = book[HELD + bucket], book[NEWEST + bucket]
            book[WAITING + level] -= held
            book[HELD + bucket], book[NEWEST + bucket] = 0, -1
            rows = ((held - 1) & (CHUNK - 1)) + 1
            while chunk >= 0:
                for row in range(chunk * CHUNK, chunk * CHUNK + rows):
                    if pours:
                        _sift_up(near, far[row, 0], far[row, 1], size)
                        size += 1
                    else:
                        _put(queue, level - 1, far[row, 0], far[row, 1])
                rows = CHUNK
                following = after[chunk]
                after[chunk] = book[FREE]
                book[FREE] = chunk
                chunk = following
            if not pours:
                break
            book[LIMIT] += 1 << shift
            bucket += 1
            if bucket == end or book[WAITING + level] == 0 or size + book[HELD + bucket] > FEW:
                book[NEAR] = size
                return
