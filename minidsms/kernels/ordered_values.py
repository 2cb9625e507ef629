"""The least or greatest of each group's values while values come and go: MIN, MAX, FIRST, LAST, ARG_MIN and ARG_MAX.

All groups' values stand in one pool, `nodes` (cap, 8) int64 = [key, value, is not NULL, count, left, right,
priority, size]; node 0 is nobody, free nodes are chained through `left`. A group knows its nodes by `state` (cap, 4)
int64, all zeros when it is empty.
  FIFO deletions: a monotone deque, state = [front, back, rows come, rows gone]. A value that comes strikes out
  those before it
      that it beats, for they leave earlier; each node keeps in `count` which row of its group it is, so that the
      deletion of a row needs no value. Amortised O(1).
  Any deletions:  a treap by key with multiplicities, state = [root, extreme node, -, -]. O(log n) expected. Where it
      is to be counted (`kernels.quantiles`), each node's `size` is how many values it and those below it have.
Keys order as int64, or as the texts of codes; of ARG_MIN and ARG_MAX equal ones as their values, the arguments.
Both return how far they came, to be called again when the pool has grown.  meta: (3,) [first free node, nodes ever
used, seed].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from minidsms.kernels.text_order import WrittenTexts, compare_texts
from minidsms.machine_code import Int8s, Int8Table, Int64s, Int64Table, helper, kernel

KEY, WORD, VALID, COUNT, LEFT, RIGHT, PRIORITY, SIZE = range(8)
_HEAD, _BACK, _COME, _GONE = range(4)
NO_TIES, TIED_WORDS, TIED_FLOATS, TIED_TEXTS = range(4)
"""How the values of equal keys are ordered: not at all, or as what their words are."""


class Valued(NamedTuple):
    """A batch of elements (n,): their groups, signs, whether there is a value, what it is ordered by, and its word."""

    ids: Int64s
    sign: Int8s
    valid: Int8s
    keys: Int64s
    words: Int64s


class OrderedBy(NamedTuple):
    """is_text: keys are codes of texts.  largest: the extreme is the largest.  by_arrival: FIRST and LAST.
    is_sized: nodes know how many values are below them.  ties: NO_TIES or how the values of equal keys are ordered.
    """

    texts: WrittenTexts
    is_text: bool
    largest: bool
    by_arrival: bool
    is_sized: bool
    ties: int


class OrderedArrays(NamedTuple):
    """state: where each group's structure begins.  nodes, meta: of the pool."""

    state: Int64Table
    nodes: Int64Table
    meta: Int64s


@helper(typed=True)
def _take(nodes: Int64Table, meta: Int64s) -> int:
    """A free node, or 0."""
    node = meta[0]
    if node > 0:
        meta[0] = nodes[node, LEFT]
    elif meta[1] < nodes.shape[0]:
        node = meta[1]
        meta[1] += 1
    else:
        return 0
    nodes[node, LEFT] = 0
    nodes[node, RIGHT] = 0
    return int(node)


@helper(typed=True)
def _give(nodes: Int64Table, meta: Int64s, node: int) -> None:
    nodes[node, COUNT] = 0
    nodes[node, LEFT] = meta[0]
    meta[0] = node


@helper(typed=True)
def is_before(key: int, word: int, other: int, other_word: int, by: OrderedBy) -> bool:
    """Whether a key, with its value, is nearer to the extreme than another one."""
    if key != other:
        is_less = compare_texts(key, other, by.texts) < 0 if by.is_text else key < other
    elif by.ties == NO_TIES or word == other_word:
        return False
    elif by.ties == TIED_TEXTS:
        is_less = compare_texts(word, other_word, by.texts) < 0
    elif by.ties == TIED_FLOATS:
        # Bits of floats in the order of the floats: those of negative ones run backwards.
        is_less = word ^ ((word >> 63) & 0x7FFFFFFFFFFFFFFF) < other_word ^ ((other_word >> 63) & 0x7FFFFFFFFFFFFFFF)
    else:
        is_less = word < other_word
    return bool(is_less != by.largest)


@helper(typed=True)
def _is_at(nodes: Int64Table, node: int, key: int, word: int, by: OrderedBy) -> bool:
    """The node has this key, and this value if that makes a difference."""
    return bool(nodes[node, KEY] == key and (by.ties == NO_TIES or nodes[node, WORD] == word))


@kernel
def deque_extremes(
    start: int,
    elements: Valued,
    by: OrderedBy,
    append_only: bool,
    ordered: OrderedArrays,
    results: Int64Table,
    status: Int8Table,
    j: int,
) -> int:
    """FIFO deletions. by_arrival: FIRST and LAST; the key is the row's number in its group, and NULLs are values.

    append_only: nothing is ever deleted, so the extreme alone is kept.
    """
    state, nodes, meta = ordered.state, ordered.nodes, ordered.meta
    by_arrival = by.by_arrival
    ids, sign, valid, keys, words = elements.ids, elements.sign, elements.valid, elements.keys, elements.words
    for i in range(start, ids.shape[0]):
        group = ids[i]
        if sign[i] > 0:
            number = state[group, _COME]
            key, word = number if by_arrival else keys[i], words[i]
            back = state[group, _BACK]
            wanted = by_arrival or valid[i] != 0
            if wanted and append_only and back > 0:
                wanted = is_before(key, word, nodes[back, KEY], nodes[back, WORD], by)
            if wanted:
                while back > 0 and not is_before(nodes[back, KEY], nodes[back, WORD], key, word, by):
                    before = nodes[back, LEFT]
                    _give(nodes, meta, back)
                    back = before
                state[group, _BACK] = back
                if back == 0:
                    state[group, _HEAD] = 0
                node = _take(nodes, meta)
                if node == 0:
                    return i
                nodes[node, KEY] = key
                nodes[node, WORD] = word
                nodes[node, VALID] = valid[i]
                nodes[node, COUNT] = number + 1
                nodes[node, LEFT] = back
                if back > 0:
                    nodes[back, RIGHT] = node
                else:
                    state[group, _HEAD] = node
                state[group, _BACK] = node
            state[group, _COME] = number + 1
        elif sign[i] < 0:
            state[group, _GONE] += 1
            front = state[group, _HEAD]
            if front > 0 and nodes[front, COUNT] == state[group, _GONE]:
                following = nodes[front, RIGHT]
                _give(nodes, meta, front)
                state[group, _HEAD] = following
                if following > 0:
                    nodes[following, LEFT] = 0
                else:
                    state[group, _BACK] = 0
            if state[group, _GONE] == state[group, _COME]:
                state[group, _GONE] = 0
                state[group, _COME] = 0
        front = state[group, _HEAD]
        results[i, j] = nodes[front, WORD] if front > 0 else 0
        status[i, j] = nodes[front, VALID] if front > 0 else 0
    return len(ids)


@helper(typed=True)
def _merge(nodes: Int64Table, left: int, right: int) -> int:
    """The treap of both, all keys of left before those of right."""
    root: Any = np.int64(0)
    parent: Any = np.int64(0)
    side = LEFT
    while True:
        if left == 0 or right == 0:
            top = left + right
        elif nodes[left, PRIORITY] > nodes[right, PRIORITY]:
            top = left
        else:
            top = right
        if parent == 0:
            root = top
        else:
            nodes[parent, side] = top
        if left == 0 or right == 0:
            return root
        nodes[top, SIZE] = nodes[left, SIZE] + nodes[right, SIZE]
        parent = top
        if top == left:
            side = RIGHT
            left = nodes[left, RIGHT]
        else:
            side = LEFT
            right = nodes[right, LEFT]


@helper(typed=True)
def _split(nodes: Int64Table, tree: int, top: int, smaller: int, by: OrderedBy) -> None:
    """Hang the part of tree before the key of top, of so many smaller values, under its left, the part after it under
    its right.
    """
    key, word = nodes[top, KEY], nodes[top, WORD]
    before, before_side = top, LEFT
    after, after_side = top, RIGHT
    while tree > 0:
        if is_before(nodes[tree, KEY], nodes[tree, WORD], key, word, by):
            nodes[before, before_side] = tree
            before, before_side = tree, RIGHT
            size = smaller
            smaller -= nodes[nodes[tree, LEFT], SIZE] + nodes[tree, COUNT]
            nodes[tree, SIZE] = size
            tree = nodes[tree, RIGHT]
        else:
            nodes[after, after_side] = tree
            after, after_side = tree, LEFT
            nodes[tree, SIZE] -= smaller
            tree = nodes[tree, LEFT]
    nodes[before, before_side] = 0
    nodes[after, after_side] = 0


@helper(typed=True)
def _resize(nodes: Int64Table, tree: int, node: int, step: int, by: OrderedBy) -> None:
    """Add step to the sizes of the tree down to this node of it."""
    key, word = nodes[node, KEY], nodes[node, WORD]
    while tree != node:
        nodes[tree, SIZE] += step
        tree = nodes[tree, LEFT if is_before(key, word, nodes[tree, KEY], nodes[tree, WORD], by) else RIGHT]
    nodes[node, SIZE] += step


@helper(typed=True)
def add_to_treap(elements: Valued, i: int, by: OrderedBy, ordered: OrderedArrays) -> int:
    """Add the value of element i to its group's; returns its node, 0 where the pool is full."""
    state, nodes, meta = ordered.state, ordered.nodes, ordered.meta
    group, key, word = elements.ids[i], elements.keys[i], elements.words[i]
    root = state[group, _HEAD]
    at = root
    while at > 0 and not _is_at(nodes, at, key, word, by):
        at = nodes[at, LEFT if is_before(key, word, nodes[at, KEY], nodes[at, WORD], by) else RIGHT]
    if at > 0:
        nodes[at, COUNT] += 1
        if by.is_sized:
            _resize(nodes, root, at, 1, by)
        return int(at)
    node = _take(nodes, meta)
    if node == 0:
        return 0
    meta[2] = meta[2] * 6364136223846793005 + 1442695040888963407
    priority = meta[2] >> 1
    nodes[node, KEY] = key
    nodes[node, WORD] = word
    nodes[node, VALID] = elements.valid[i]
    nodes[node, COUNT] = 1
    nodes[node, PRIORITY] = priority
    # It belongs where the priorities of the heap have it.
    parent = np.int64(0)
    side = LEFT
    at = root
    while at > 0 and nodes[at, PRIORITY] >= priority:
        nodes[at, SIZE] += 1
        parent = at
        side = LEFT if is_before(key, word, nodes[at, KEY], nodes[at, WORD], by) else RIGHT
        at = nodes[at, side]
    nodes[node, SIZE] = nodes[at, SIZE] + 1
    smaller = np.int64(0)
    if by.is_sized:
        below = at
        while below > 0:
            if is_before(key, word, nodes[below, KEY], nodes[below, WORD], by):
                below = nodes[below, LEFT]
            else:
                smaller += nodes[nodes[below, LEFT], SIZE] + nodes[below, COUNT]
                below = nodes[below, RIGHT]
    _split(nodes, at, node, smaller, by)
    if parent == 0:
        state[group, _HEAD] = node
    else:
        nodes[parent, side] = node
    return int(node)


@helper(typed=True)
def take_from_treap(elements: Valued, i: int, by: OrderedBy, ordered: OrderedArrays) -> int:
    """Take the value of element i from its group's; returns the node this has freed, or 0."""
    state, nodes, meta = ordered.state, ordered.nodes, ordered.meta
    group, key, word = elements.ids[i], elements.keys[i], elements.words[i]
    root = state[group, _HEAD]
    parent = np.int64(0)
    side = LEFT
    at = root
    while at > 0 and not _is_at(nodes, at, key, word, by):
        parent = at
        side = LEFT if is_before(key, word, nodes[at, KEY], nodes[at, WORD], by) else RIGHT
        at = nodes[at, side]
    if at == 0:
        return 0
    nodes[at, COUNT] -= 1
    if by.is_sized:
        _resize(nodes, root, at, -1, by)
    if nodes[at, COUNT] > 0:
        return 0
    rest = _merge(nodes, nodes[at, LEFT], nodes[at, RIGHT])
    if parent == 0:
        state[group, _HEAD] = rest
    else:
        nodes[parent, side] = rest
    _give(nodes, meta, at)
    return int(at)


@kernel
def treap_extremes(
    start: int, elements: Valued, by: OrderedBy, ordered: OrderedArrays, results: Int64Table, status: Int8Table, j: int
) -> int:
    """Deletions in any order. by_arrival: FIRST and LAST, whose keys are arrival numbers and whose NULLs are values."""
    state, nodes = ordered.state, ordered.nodes
    by_arrival = by.by_arrival
    ids, sign, valid, keys, words = elements.ids, elements.sign, elements.valid, elements.keys, elements.words
    for i in range(start, ids.shape[0]):
        group = ids[i]
        if sign[i] != 0 and (by_arrival or valid[i]):
            extreme = state[group, _BACK]
            if sign[i] > 0:
                node = add_to_treap(elements, i, by, ordered)
                if node == 0:
                    return i
                if extreme == 0 or is_before(keys[i], words[i], nodes[extreme, KEY], nodes[extreme, WORD], by):
                    state[group, _BACK] = node
            elif extreme > 0 and take_from_treap(elements, i, by, ordered) == extreme:
                extreme = state[group, _HEAD]
                while extreme > 0 and nodes[extreme, LEFT] > 0:
                    extreme = nodes[extreme, LEFT]
                state[group, _BACK] = extreme
        extreme = state[group, _BACK]
        results[i, j] = nodes[extreme, WORD] if extreme > 0 else 0
        status[i, j] = nodes[extreme, VALID] if extreme > 0 else 0
    return len(ids)


@kernel
def pack_nodes(nodes: Int64Table, state: Int64Table, packed: Int64Table, used: int) -> int:
    """Copy the nodes in use to the front of `packed` and renumber all links; returns how many nodes that uses.

    A node in use has count > 0. Afterwards the old pool's priorities are lost: they hold the new numbers.
    """
    to = 1
    for node in range(1, used):
        if nodes[node, COUNT] > 0:
            for k in range(packed.shape[1]):
                packed[to, k] = nodes[node, k]
            nodes[node, PRIORITY] = to
            to += 1
    for node in range(1, to):
        packed[node, LEFT] = nodes[packed[node, LEFT], PRIORITY] if packed[node, LEFT] > 0 else 0
        packed[node, RIGHT] = nodes[packed[node, RIGHT], PRIORITY] if packed[node, RIGHT] > 0 else 0
    for group in range(state.shape[0]):
        for k in range(2):
            if state[group, k] > 0:
                state[group, k] = nodes[state[group, k], PRIORITY]
    return to
