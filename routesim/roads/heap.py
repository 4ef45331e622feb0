"""The heap of searches: nodes by their cost, equal costs by the index of the node."""

from routesim.arrays import Floats, Ints32
from routesim.kernels import lean_part


@lean_part
def push(keys: Floats, nodes: Ints32, size: int, key: float, node: int) -> int:
    """Put a node into a heap of `size` entries; return the new size. Equal keys are ordered by node."""
    slot = size
    while slot > 0:
        above = (slot - 1) >> 1
        if keys[above] < key or (keys[above] == key and nodes[above] <= node):
            break
        keys[slot], nodes[slot] = keys[above], nodes[above]
        slot = above
    keys[slot], nodes[slot] = key, node
    return size + 1


@lean_part
def pop(keys: Floats, nodes: Ints32, size: int) -> int:
    """Take the first entry off a heap of `size` entries; return the new size."""
    size -= 1
    key, node, slot = keys[size], nodes[size], 0
    while 2 * slot + 1 < size:
        child = 2 * slot + 1
        right = child + 1
        if right < size and (keys[right] < keys[child] or (keys[right] == keys[child] and nodes[right] < nodes[child])):
            child = right
        if key < keys[child] or (key == keys[child] and node <= nodes[child]):
            break
        keys[slot], nodes[slot] = keys[child], nodes[child]
        slot = child
    keys[slot], nodes[slot] = key, node
    return size
