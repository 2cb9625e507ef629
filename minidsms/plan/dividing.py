"""Switching sharing off and on while queries run: every query its own operators and rows, or one of each for all.

Invariant: no answer changes. Operators that are divided keep their lineage, so those of one lineage have equal state
whenever the engine is at rest, and one of them can take the place of all. The rows of a divided query stand in stores
of its own under the numbers they have in the stream's store, so references are good in either.
docs/design, points 3 and 10; Babu 2005, section 2.3.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from minidsms.engine.group import Group
from minidsms.engine.network import Network
from minidsms.operators.operator import Operator
from minidsms.operators.stream_source import StreamSource
from minidsms.plan.copying import CannotCopy, copied
from minidsms.plan.sharing import name_lineage
from minidsms.synopses.stream_store import StreamStore


def divide(group: Group) -> None:
    """Give every network of the group operators and stores of its own, where there are copies of what it has.

    The engine is at rest; whoever calls frees the stores.
    """
    group.unfold_all()
    for network in _running(group):
        stores: dict[int, StreamStore] = {}
        for source in _sources(network.operators):
            if source.own is None:
                own = StreamStore(source.store.schema)
                own.start_at(source.reader.lo)
                stores[id(source.store)] = own
        try:
            copies = copied(network.operators[:-1], stores, {})
        except CannotCopy:
            continue  # it goes on sharing
        for source in _sources(copies.values()):
            if source.own is not None and id(source.store) in stores:
                source.own.take_back(source.store, source.own.first_claimed())
        group.remove(network)
        network.replace(copies)
        group.add(network)


def own(group: Group, network: Network) -> None:
    """Give a network operators of its own, which are not going to be as those of other networks. CannotCopy where
    there are no copies of them. The engine is at rest.
    """
    copies = copied(network.operators[:-1], {}, {})
    group.remove(network)
    network.replace(copies)
    for operator in copies.values():
        if operator.inputs:
            name_lineage(operator, None, None)
    group.add(network)


def share(group: Group) -> None:
    """Let one operator of each lineage serve all networks of the group, over the streams' stores."""
    stores: dict[int, StreamStore] = {}
    for network in _running(group):
        for source in _sources(network.operators):
            if source.own is not None:
                source.store.take_back(source.own, source.own.tail)
                stores[id(source.own)] = source.store
    taken: dict[int, Operator] = {}
    for network in _running(group):
        has_own = any(source.own is not None for source in _sources(network.operators))
        missing, known = _missing(network, taken)
        if known or has_own:
            try:
                copies = copied(missing, stores, known)
            except CannotCopy:
                continue  # it keeps its own
            group.remove(network)
            network.replace(copies)
            group.add(network)
        for operator in network.operators[:-1]:
            taken.setdefault(operator.lineage, operator)


def take_back_all(groups: Collection[Group], store: StreamStore) -> None:
    """Let a stream's store hold again what the queries hold that have the rows to themselves, or in a store with fewer
    columns, for one that begins with it. They go on for themselves.
    """
    for mirror in store.mirrors:
        take_back_all(groups, mirror)
        if store.tail <= store.begins:
            store.take_back(mirror, mirror.tail)
    for group in groups:
        for source in _sources(group.operators):
            if source.store is store and source.own is not None:
                store.take_back(source.own, source.own.tail)


def _missing(network: Network, taken: Mapping[int, Operator]) -> tuple[list[Operator], dict[int, Operator]]:
    """The operators that a network needs beside those taken, and, by the id of its own, the taken ones they join."""
    known: dict[int, Operator] = {}
    needed: set[int] = set()
    for operator in reversed(network.operators):  # readers before what they read
        if operator is network.output or id(operator) in needed:
            for queue in operator.inputs:
                producer = queue.producer
                assert producer is not None
                if producer.lineage in taken:
                    known[id(producer)] = taken[producer.lineage]
                else:
                    needed.add(id(producer))
    return [op for op in network.operators if id(op) in needed], known


def _running(group: Group) -> list[Network]:
    return [network for network in group.networks if network.failure is None]


def _sources(operators: Iterable[Operator]) -> list[StreamSource]:
    return [op for op in operators if isinstance(op, StreamSource)]
