"""The experiments of change detection run, on little, and say what they should."""

from __future__ import annotations

from experiments.change_detection import detection, engine
from experiments.change_detection.replays import contestants, replay
from experiments.change_detection.streams import SHARE, Changing, Packets


def test_a_larger_change_is_told_sooner() -> None:
    large, small = (detection.told("cusum", detection.Case(20, 0.5, other, 60)) for other in (0.8, 0.6))
    assert large.delay is not None and small.delay is not None and large.delay < small.delay


def test_detectors_follow_changes_with_fewer_orders_than_a_small_window() -> None:
    stream = Changing(4, 100_000, changes=2)
    made = contestants(4)
    small, watched = (replay(stream, made[name]) for name in ("window 41", "A-Greedy* / cusum"))
    assert watched.reoptimized * 3 < small.reoptimized
    assert watched.told is not None and 1 <= watched.told <= 5
    assert 1.0 <= watched.processing_s / watched.oracle_s < 1.15


def test_the_oracle_gives_the_same_answer() -> None:
    stream = engine.turning(100_000, 40_000)
    runs = [engine.run(stream, engine.CONDITIONS["hashed"], oracle=oracle) for oracle in (True, False)]
    assert runs[0].answer == runs[1].answer
    assert runs[0].decisions == 3, "an order for each phase"


def test_packets_change_one_predicate_at_a_time_and_are_as_many_as_asked_for() -> None:
    stream = Packets(5, tuples=1_000_000, seed=2)
    drops, best = stream.drops()
    assert drops.shape == (sum(stream.phases), 5) and len(best) == len(stream.phases)
    assert len(drops) * SHARE >= stream.tuples
    found = replay(stream, contestants(5)["A-Greedy* / cusum"])
    assert len(found.delays) == len(best) - 1 and 0.9 < found.total_s / found.oracle_s < 1.3
