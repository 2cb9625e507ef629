"""The counts of the source: what they find in a file made for it."""

from __future__ import annotations

from pathlib import Path

from benchmarks.house import (
    chain_walks,
    files_of_node,
    functions,
    into_facades,
    join_families,
    nodes,
    report,
    sources,
    upward,
)

ROOT = Path(__file__).parents[2]

KERNEL = '''
from minidsms.streamon.framework import Executor
HEAD, NEXT = range(2)

@kernel("void()")
def join(self, a, b, *, c):
    """Two lines
    of text."""
    while a >= 0:
        b = a
        a = links[a, NEXT]
    while b > 0:
        b = b - links[b]
'''


def test_counts_of_a_kernel(tmp_path: Path) -> None:
    folder = tmp_path / "minidsms" / "kernels"
    folder.mkdir(parents=True)
    (folder / "join.py").write_text(KERNEL)
    files = sources(tmp_path)
    (function,) = functions(files)
    assert (function.parameters, function.lines) == (3, 6)
    assert chain_walks(files) == ["minidsms/kernels/join.py:9"]
    assert upward(files) == ["minidsms/kernels/join.py -> minidsms.streamon.framework"]
    found = report(tmp_path, details=False)
    assert found["integer words of kernels (constants in capitals)"] == 2
    assert found["join kernels (compiled functions that join)"] == 1


def test_nodes_are_counted_by_the_files_that_name_them(tmp_path: Path) -> None:
    bound = "class Node: ...\nclass Filter(Node): ...\nclass Same(Filter): ...\nclass Kind: ...\n"
    plan = "from minidsms.cql import bound\nclass Stop(bound.Node): ...\n"
    rule = "from minidsms.cql.bound import Filter, Same\ndef rule(node): return isinstance(node, Filter)\n"
    for name, text in {"cql/bound": bound, "plan/logical": plan, **{f"plan/rule{i}": rule for i in range(5)}}.items():
        path = tmp_path / "minidsms" / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    files = sources(tmp_path)
    assert nodes(files) == ["Filter", "Same", "Stop"]
    assert [len(files_of_node(files, node)) for node in nodes(files)] == [6, 1, 1]
    assert report(tmp_path, details=False)["nodes that more than 5 files name"] == 1


def test_a_form_of_a_join_kernel_belongs_to_its_family(tmp_path: Path) -> None:
    folder = tmp_path / "minidsms" / "kernels"
    folder.mkdir(parents=True)
    for name, opening in (
        ("join", "Joining."),
        ("pairs", "Joining: `kernels.join`\nof two."),
        ("probing", "One.\n\nNo `kernels.join`."),
    ):
        (folder / f"{name}.py").write_text(f'"""{opening}"""\n{KERNEL}')
    join, pairs, probing = (f"minidsms/kernels/{name}.py:join" for name in ("join", "pairs", "probing"))
    assert join_families(sources(tmp_path)) == [f"{join}, {pairs}", probing]


def test_nothing_below_streamon_imports_it_and_nothing_below_the_facades_imports_them() -> None:
    files = sources(ROOT)
    assert upward(files) == []
    assert into_facades(files) == []
