"""Joining two windows, instant by instant, where every deletion is put out: `kernels.mjoin` for one step.

The elements of a run are taken in one loop whose figures stay in registers, which the loop over pipelines of any length
cannot do: where 100 elements come at an instant this takes 0.5 to 0.6 of the time of `mjoin`, where one does 0.8 to
1.1. LLVM copies that loop for each kind of turn, as long as it is small enough: with one flag more in it, inner joins
took 1.4 times as long (benchmarks/results/profiles.md).

Of a left outer join, rows of input 0 without a match are put out, too, with slot -1 of input 1. No count of matches is
kept: rows of input 1 that one row of input 0 meets have the same key, so that the first such row says whether there are
others. An instant goes so, deletions first: rows of input 0 leave, with their matches or none; rows of input 1 are
linked as they come, and the first of a key that had none takes the NULLs from the rows of input 0 (LOSE); rows of input
1 leave their matches; those that have come meet theirs; the last that has left a key which has none now gives the NULLs
back (GAIN); rows of input 0 come. Of a bag the last to leave a key is told as it is unlinked: its place is negative
until then.

Invariant: as of `kernels.mjoin`; the two leave the same windows and put out the same pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

# A name to a line would be a fifth of the file.
# isort: off
# fmt: off
from minidsms.machine_code import Int64s, Rows, helper, int64, kernel, uint64
from minidsms.kernels.access_methods.methods import first_tag
from minidsms.kernels.chains import (
    Chain, chain_between, chain_of, checks_hold, first_of_key, further, is_linked, link_slot, link_slots, lowest_slot,
    next_slot, older, place_steps, tag_at, unlink_slot,
)
from minidsms.kernels.join_instants import next_changes
from minidsms.kernels.join_layout import (
    DELETE, DONE, FULL, GAIN, INSERT, LOSE, MISSING, NO_LIMIT, PAUSED, START, JoinRun, JoinStep, Output,
    Pipelines, Windows,
)
from minidsms.kernels.links import head_slot
from minidsms.kernels.mixing import bucket
# fmt: on
# isort: on


class Step(NamedTuple):
    """By which rows of input i are joined, kept in registers.

    source, source_mask: where their tags stand.  buckets, shift, near: of what the step probes, see `chains`.  chain:
    where it walks.  check, checks_end: what it compares.  hashed, reach: as of a step.
    """

    i: int
    source: int
    source_mask: int
    buckets: int
    shift: int
    near: int
    chain: Chain
    check: int
    checks_end: int
    hashed: int
    reach: int


class Turn(NamedTuple):
    """What rows of input i do in a phase of an instant.

    is_new: they come, and are linked.  asks: of an outer join, they ask whether they have a match, or whether another
    row has their key.  tells: equal tags are equal keys.
    """

    i: int
    phase: int
    is_bag: bool
    has_nulls: bool
    is_new: bool
    asks: bool
    tells: bool


@helper(inline=True)
def _step_of(windows: Windows, steps: Rows[JoinStep], i: int, chain: Chain) -> Any:
    """The step of input i."""
    return Step(
        i, steps[i].source_nodes, steps[i].source_mask, steps[i].target_heads, steps[i].target_shift,
        windows.inputs[1 - i].lo, chain, steps[i].check, steps[i].checks_end, steps[i].hashed, steps[i].reach,
    )  # fmt: skip


@helper(inline=True)
def _turn_of(windows: Windows, step: Step, phase: int, outer: bool) -> Any:
    """What rows do by this step."""
    i = step.i
    is_bag, has_nulls = windows.inputs[i].is_bag != 0, windows.inputs[i].has_nulls != 0
    is_new = phase == LOSE or (phase == INSERT and not (outer and i == 1))
    asks = outer and (i == 0 or (phase != INSERT and (is_bag or phase != DELETE)))
    tells = step.check == step.checks_end and step.reach == 0 and step.hashed == 0
    return Turn(i, phase, is_bag, has_nulls, is_new, asks, tells)


@helper(inline=True)
def _next_like(windows: Windows, pipelines: Pipelines, chosen: Int64s, step: Step, tag: int, slot: int) -> Any:
    """From a slot on the first that has the tag, or a further one that the step asks for, with that tag, below
    chain.low where there is none; and how many were inspected.
    """
    s, inspected = next_slot(windows.nodes, step.chain, tag, slot)
    if s < step.chain.low and step.reach != 0:
        tag, s, looked = further(windows, pipelines.steps, step.i, pipelines.checks, chosen, step.chain, tag)
        inspected += looked
    return tag, s, inspected


@helper(inline=True)
def _next_match(windows: Windows, pipelines: Pipelines, chosen: Int64s, step: Step, tag: int, slot: int) -> Any:
    """The same of those that also have the further keys, chosen."""
    tag, s, inspected = _next_like(windows, pipelines, chosen, step, tag, slot)
    chosen[1 - step.i] = s
    if step.check != step.checks_end:
        while s >= step.chain.low and not checks_hold(windows, pipelines.checks, chosen, step.check, step.checks_end):
            at_next = older(windows.nodes, step.chain, s)
            tag, s, looked = _next_like(windows, pipelines, chosen, step, tag, at_next)
            chosen[1 - step.i] = s
            inspected += looked
    return tag, s, inspected


@helper(inline=True)
def _first_match(windows: Windows, pipelines: Pipelines, chosen: Int64s, step: Step) -> Any:
    """The first match of the row chosen of the step's input."""
    tag = windows.nodes[uint64(step.source + 2 * (chosen[step.i] & step.source_mask))]
    if step.hashed < 0:
        tag = first_tag(windows, pipelines.steps[step.i], pipelines.checks, chosen, tag)
    first = head_slot(windows.heads, step.buckets + bucket(tag, step.shift), step.near)
    return _next_match(windows, pipelines, chosen, step, tag, first)


# ------------------------------------------------------------------------------------------ of an outer join, input 1


@helper(inline=True)
def _oldest_other(windows: Windows, turn: Turn, own: int) -> Any:
    """From which slot of input 1 on another row may have the key of one that comes or leaves."""
    left = lowest_slot(windows, 1) if turn.is_bag else windows.inputs[1].probe_lo
    return own + 1 if turn.phase == GAIN else left


@helper
def _has_match(windows: Windows, pipelines: Pipelines, chosen: Int64s, low: int) -> Any:
    """Whether the row chosen of input 0 has a match in a slot of input 1 from `low` on, other than the one chosen; and
    how many were inspected.
    """
    step = _step_of(windows, pipelines.steps, int64(0), chain_between(pipelines.steps, 0, low, int64(NO_LIMIT)))
    own = chosen[1]
    tag, s, inspected = _first_match(windows, pipelines, chosen, step)
    if s == own:
        at_next = older(windows.nodes, step.chain, s)
        tag, s, looked = _next_match(windows, pipelines, chosen, step, tag, at_next)
        inspected += looked
    chosen[1] = own
    return s >= low, inspected


@helper(inline=True)
def _has_like(windows: Windows, steps: Rows[JoinStep], own: int, low: int) -> Any:
    """Whether another slot of input 1 from `low` on has the tag of this one; and how many were inspected."""
    nodes, x = windows.nodes, steps[1].source_key
    chain = Chain(windows.keys[x].nodes, int64(2), windows.inputs[1].mask, low, int64(NO_LIMIT))
    tag = tag_at(nodes, chain, own)
    s, inspected = next_slot(nodes, chain, tag, first_of_key(windows, 1, x, tag))
    if s == own:
        s, looked = next_slot(nodes, chain, tag, older(nodes, chain, s))
        inspected += looked
    return s >= low, inspected


# --------------------------------------------------------------------------------------------------------- instants


@helper(inline=True)
def _first_phase(phase: int, outer: bool) -> Any:
    """The phase and the input with which an instant begins."""
    return (int64(LOSE), int64(1)) if outer and phase == INSERT else (int64(phase), int64(0))


@helper(inline=True)
def _next_phase(phase: int, i: int, outer: bool) -> Any:
    """Which phase of an instant, of which input, follows; START behind the last."""
    if not outer:
        following = (int64(phase), int64(1)) if i == 0 else (int64(INSERT if phase == DELETE else START), int64(0))
    elif phase == DELETE:
        following = (int64(LOSE), int64(1)) if i == 0 else (int64(INSERT), int64(1))
    elif phase == LOSE:
        following = int64(DELETE), int64(1)
    elif phase == GAIN:
        following = int64(INSERT), int64(0)
    else:
        following = (int64(START), int64(0)) if i == 0 else (int64(GAIN), int64(1))
    return following


@helper(inline=True)
def _next_turn(windows: Windows, run: JoinRun, phase: int, i: int, outer: bool) -> Any:
    """What comes after a phase that is done: the phase, START where nothing waits; the input; its first element."""
    inputs, stops, state = windows.inputs, run.stops, run.state
    if phase == DELETE:
        inputs[i].probe_lo = lowest_slot(windows, i)
    elif phase == INSERT:
        inputs[i].hi = stops[i]
    if phase != START:
        phase, i = _next_phase(phase, i, outer)
    at = int64(0)
    waits = True
    if phase == START:
        phase = next_changes(windows, run, False)
        phase, i = _first_phase(phase, outer)
        waits = phase != START and state.status != MISSING
    if waits:
        at = inputs[i].old_lo if phase in (DELETE, GAIN) else inputs[i].hi
        if phase == INSERT and inputs[i].is_bag == 0 and not (outer and i == 1):
            link_slots(windows, i, at, stops[i])
    return phase, i, at, waits


@helper(inline=True)
def _take(windows: Windows, turn: Turn, at: int) -> Any:
    """The slot of the element at a position, whether it is the last of its key to leave, and whether it can join."""
    places, i = windows.places, turn.i
    own = places[uint64(at)] if turn.is_bag else at
    is_last = own < 0
    if is_last:
        own = ~own
        places[uint64(at)] = own
    joins = True
    if turn.is_new and (turn.is_bag or turn.phase == LOSE):
        joins = link_slot(windows, i, own)
    elif turn.has_nulls:
        joins = is_linked(windows, i, own)
    if turn.is_bag and turn.phase == DELETE and joins:
        unlink_slot(windows, i, own)
    return own, is_last, joins


@helper(inline=True)
def _put(output: Output, found: int, left: int, right: int, instant: int, sign: int) -> None:
    """Put the pair out."""
    at = uint64(found)
    output.out[0, at], output.out[1, at] = left, right
    output.out_ts[at], output.out_sign[at] = instant, sign


@kernel
def pair_join(windows: Windows, pipelines: Pipelines, run: JoinRun, output: Output, found: int) -> int:
    """As `kernels.mjoin.mjoin` of two inputs, not netted; with state.is_outer a left outer join.

    O(elements + pairs + slots inspected).
    """
    inputs, nodes, steps = windows.inputs, windows.nodes, pipelines.steps
    walks, chosen, state = run.walks, run.chosen, run.state
    limit, most, outer = len(output.out_ts), state.most, state.is_outer != 0
    phase, i, at = state.phase, state.input, state.slot
    s = walks[0].following if state.depth >= 0 else int64(-1)
    inspected, waits = 0, True
    place_steps(windows, steps)
    state.status, state.depth = DONE, -1
    while waits:
        end = inputs[i].lo if phase in (DELETE, GAIN) else run.stops[i]
        if phase != START and (at < end or s >= 0):
            step = _step_of(windows, steps, i, chain_of(windows, steps, i))
            turn = _turn_of(windows, step, phase, outer)
            instant, sign, pads = state.instant, 1 if phase in (INSERT, GAIN) else -1, phase in (LOSE, GAIN)
            low, own, tag = step.chain.low, chosen[i], walks[0].tag
            while True:
                while s >= low and found < limit:
                    left, right = (own, s) if i == 0 else (s, int64(-1) if pads else own)
                    _put(output, found, left, right, instant, sign)
                    found += 1
                    at_next = older(nodes, step.chain, s)
                    tag, s, looked = _next_match(windows, pipelines, chosen, step, tag, at_next)
                    inspected += looked
                if found == limit and (s >= low or turn.asks):
                    state.status = FULL
                if state.status == FULL or at == end or inspected >= most:
                    break
                own, is_last, joins = _take(windows, turn, at)
                at += 1
                s, chosen[i], has_others = int64(-1), own, False
                asks_others = turn.asks and i == 1 and not (turn.is_bag and phase == GAIN)
                if joins and asks_others and turn.tells:
                    has_others, looked = _has_like(windows, steps, own, _oldest_other(windows, turn, own))
                    inspected += looked
                if joins and (phase == DELETE or not has_others):
                    tag, s, looked = _first_match(windows, pipelines, chosen, step)
                    inspected += looked
                if asks_others:
                    if s >= low and not turn.tells:
                        has_others, looked = _has_match(windows, pipelines, chosen, _oldest_other(windows, turn, own))
                        inspected += looked
                    if phase != DELETE:
                        s = int64(-1) if has_others else s
                    elif joins and not has_others:
                        windows.places[uint64(at - 1)] = ~own  # the last of its key, as GAIN will see
                elif turn.asks and i == 1:
                    s = s if is_last else int64(-1)
                elif turn.asks and s < low:
                    _put(output, found, own, int64(-1), instant, sign)
                    found += 1
            walks[0].tag = tag
            if state.status == FULL:
                walks[0].following, state.depth = s, 0
                break
            if at < end:
                state.status = PAUSED
                break
        s = int64(-1)
        phase, i, at, waits = _next_turn(windows, run, phase, i, outer)
    state.phase, state.input, state.slot = phase, i, at
    state.inspected += inspected
    return found
