"""`python -m benchmarks.house [FOLDER] [--git COMMIT]`: the counts by which the shape of the source is judged.

What it counts: join kernels and the chain walks in them, functions of many parameters, long functions, imports that
run upwards, the files that name a node, an access method or a technique, lines. Everything is read from the syntax
trees of the files; nothing is imported.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

LOWER = ("operators", "synopses", "plan", "kernels", "joins", "cql", "inputs", "screens", "expressions", "scheduler")
"""Rooms that StreaMon stands above."""

FACADES = ("minidsms.connection", "minidsms.query")
BELOW = {
    "aggregates", "answers", "cql", "elements", "engine", "expressions", "functions", "inputs", "joins", "kernels",
    "limits", "machine_code", "operators", "plan", "process", "queues", "scheduler", "screens", "settings", "sinks",
    "sources", "streamon", "synopses", "system_streams", "values",
}  # fmt: skip
"""Rooms that the facades stand above."""

NODES = ("Filter", "Distinct", "SemiJoin", "KeepArrival", "Aggregate GroupBy", "RelationToStream ToStream")
"""Some nodes of plans, by the names that their classes have or had."""
NODE_MODULES = ("minidsms.cql.bound", "minidsms.plan.logical")
"""Where the classes of nodes stand."""
MOST_FILES = 5
"""That should name a node."""
ACCESS_METHODS = ("ByHash", "ByCells BY_CELLS BY_ORDER", "ByAddress BY_ADDRESS")
"""Access methods, by the names of their classes and of their tags."""
TECHNIQUES = ("caching", "join_trees", "join_ordering", "k_mon", "filter_ordering", "content_routing")
_LONG = (60, 90)
_MANY = (8, 12)


@dataclass(frozen=True, eq=False)
class Source:
    """A file of the package. room: the folder under `minidsms`, or the module's name."""

    path: Path
    room: str
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return "/".join(self.path.parts[self.path.parts.index("minidsms") :])


@dataclass(frozen=True)
class Function:
    """A function: where it stands, its lines without docstring, its parameters without self."""

    name: str
    source: Source
    lines: int
    parameters: int
    node: ast.FunctionDef | ast.AsyncFunctionDef


def sources(folder: Path) -> list[Source]:
    """Every file of the package below the folder."""
    root = folder / "minidsms"
    found = []
    for path in sorted(root.rglob("*.py")):
        text = path.read_text()
        found.append(Source(path, path.relative_to(root).parts[0].removesuffix(".py"), text, ast.parse(text)))
    return found


def functions(files: Sequence[Source]) -> list[Function]:
    """Every function and method."""
    return [_function(node, source) for source in files for node in ast.walk(source.tree) if _is_function(node)]


def _is_function(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _function(node: ast.AST, source: Source) -> Function:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
    arguments = node.args
    names = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    lines = node.end_lineno - node.lineno + 1
    first = node.body[0]
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
        lines -= (first.end_lineno or first.lineno) - first.lineno + 1
    return Function(node.name, source, lines, len(names) - (names[:1] in (["self"], ["cls"])), node)


# ------------------------------------------------------------------------------------------------------------ counts


@cache
def imports(source: Source) -> frozenset[str]:
    """The modules of the package that a file imports, type-checking and lazy imports included."""
    nodes = list(ast.walk(source.tree))
    found = [n.module or "" for n in nodes if isinstance(n, ast.ImportFrom)]
    found += [alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names]
    return frozenset(module for module in found if module.startswith("minidsms"))


def upward(files: Sequence[Source]) -> list[str]:
    """`file -> module` for each import from below into StreaMon."""
    return [
        f"{source.name} -> {module}"
        for source in files
        if source.room in LOWER
        for module in sorted(imports(source))
        if module.startswith("minidsms.streamon")
    ]


def into_facades(files: Sequence[Source]) -> list[str]:
    """`file -> module` for each import of a facade from below, those for types included."""
    below = (source for source in files if source.room in BELOW)
    return [f"{source.name} -> {module}" for source in below for module in sorted(imports(source) & set(FACADES))]


def join_kernels(files: Sequence[Source]) -> list[str]:
    """Compiled functions that join: a join in their name, and a loop over chains or programs in them, or in the one
    function that several of them are made of.
    """
    joins = [f for f in functions(files) if f.source.room in ("kernels", "joins") and "join" in f.name]
    kernels = [f for f in joins if _is_compiled(f.node)]
    called = {(f.source, n.id) for f in kernels for n in ast.walk(f.node) if isinstance(n, ast.Name)}
    made_of = [f for f in joins if f not in kernels and (f.source, f.name) in called]
    return sorted(f"{f.source.name}:{f.name}" for f in (*kernels, *made_of) if _loops(f.node))


def join_families(files: Sequence[Source]) -> list[str]:
    """The join kernels; a form stands beside its original, which its file names first: `kernels.mjoin` for one step."""
    opening = {source.name: (ast.get_docstring(source.tree) or "").split("\n\n")[0] for source in files}
    families: dict[str, list[str]] = {}
    for kernel in join_kernels(files):
        name = kernel.partition(":")[0]
        form_of = re.search(r"`kernels\.(\w+)`", opening[name])
        families.setdefault(f"minidsms/kernels/{form_of[1]}.py" if form_of else name, []).append(kernel)
    return [", ".join(kernels) for kernels in families.values()]


def _is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    words = ("kernel", "jit", "compiled", "machine", "template")
    return any(any(word in ast.unparse(d) for word in words) for d in node.decorator_list)


def _loops(node: ast.AST) -> bool:
    return any(isinstance(n, ast.While | ast.For) for n in ast.walk(node))


def chain_walks(files: Sequence[Source]) -> list[str]:
    """`while x >= 0: .. x = next[x]`: loops that follow links, by the file and line."""
    found = []
    for source in files:
        if source.room not in ("kernels", "joins", "synopses"):
            continue
        for loop in (n for n in ast.walk(source.tree) if isinstance(n, ast.While)):
            tested = {n.id for n in ast.walk(loop.test) if isinstance(n, ast.Name)}
            if any(_follows(n, tested) for n in ast.walk(loop)):
                found.append(f"{source.name}:{loop.lineno}")
    return found


def _follows(node: ast.AST, tested: set[str]) -> bool:
    """An assignment `x = links[.. x ..]` of a name in the loop's test."""
    if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)):
        return False
    name = node.targets[0].id
    if name not in tested:
        return False
    value = node.value.args[0] if isinstance(node.value, ast.Call) and node.value.args else node.value
    return isinstance(value, ast.Subscript) and any(
        isinstance(n, ast.Name) and n.id == name for n in ast.walk(value.slice)
    )


def files_naming(files: Sequence[Source], words: str) -> list[str]:
    """Files in which a name or attribute is exactly one of these words; those that only import it do not count."""
    return [source.name for source in files if _names(source) & set(words.split())]


@cache
def _names(source: Source) -> frozenset[str]:
    nodes = list(ast.walk(source.tree))
    names = {n.attr for n in nodes if isinstance(n, ast.Attribute)} | {n.id for n in nodes if isinstance(n, ast.Name)}
    return frozenset(names | {n.name for n in nodes if isinstance(n, ast.ClassDef)})


def files_of_node(files: Sequence[Source], words: str) -> list[str]:
    """Files of queries, plans, Spark, archives and the definition that name a node's class.

    A class of the same name elsewhere (a query's syntax, a function's row, an operator) is another.
    """
    rooms = ("cql", "plan", "spark", "archive", "testing")
    return [s.name for s in files if s.room in rooms and _nodes_named(s) & set(words.split())]


@cache
def _nodes_named(source: Source) -> frozenset[str]:
    """The classes that a file defines as nodes' modules do, imports from them and uses, or names as `bound.X`."""
    nodes = list(ast.walk(source.tree))
    imported = {
        alias.name for n in nodes if isinstance(n, ast.ImportFrom) and n.module in NODE_MODULES for alias in n.names
    }
    spoken = {n.id for n in nodes if isinstance(n, ast.Name)} & imported
    prefixes = {module.rpartition(".")[2] for module in NODE_MODULES}
    spoken |= {
        n.attr
        for n in nodes
        if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id in prefixes
    }
    is_home = source.name.removesuffix(".py").replace("/", ".") in NODE_MODULES
    return frozenset(spoken | ({n.name for n in nodes if isinstance(n, ast.ClassDef)} if is_home else set()))


def nodes(files: Sequence[Source]) -> list[str]:
    """The classes of nodes: `Node`'s subclasses, and theirs, in the modules of nodes."""
    homes = [s for s in files if s.name.removesuffix(".py").replace("/", ".") in NODE_MODULES]
    classes = [n for source in homes for n in ast.walk(source.tree) if isinstance(n, ast.ClassDef)]
    found = {"Node"}
    for _ in classes:
        found |= {n.name for n in classes if found & {ast.unparse(base).rpartition(".")[2] for base in n.bases}}
    return sorted(found - {"Node"})


def importers(files: Sequence[Source], module: str) -> list[str]:
    """Files that import a module, or one below it, from outside its folder."""
    folder = module.replace(".", "/")
    return [
        s.name
        for s in files
        if folder not in s.name and any(m == module or m.startswith(module + ".") for m in imports(s))
    ]


def report(folder: Path, details: bool) -> dict[str, int]:
    """The counts by name, printed as they are found."""
    files = sources(folder)
    everything = functions(files)
    found: dict[str, int] = {}

    def say(name: str, count: int, which: Sequence[str] = ()) -> None:
        found[name] = count
        print(f"{name:58} {count:7,}")
        for line in which if details else ():
            print(f"    {line}")

    say("files", len(files))
    say("lines", sum(len(s.text.splitlines()) for s in files))
    for most in _MANY:
        many = sorted((f for f in everything if f.parameters > most), key=lambda f: -f.parameters)
        say(f"functions of more than {most} parameters", len(many), [_shown(f, f.parameters) for f in many[:20]])
    for most in _LONG:
        long = sorted((f for f in everything if f.lines > most), key=lambda f: -f.lines)
        say(f"functions of more than {most} lines", len(long), [_shown(f, f.lines) for f in long[:20]])
    for name, which in (
        ("join kernels (compiled functions that join)", join_kernels(files)),
        ("families of join kernels (a form beside its original)", join_families(files)),
        ("loops that walk a chain", chain_walks(files)),
        ("imports from below into streamon", upward(files)),
        ("imports from below into Connection and Query", into_facades(files)),
    ):
        say(name, len(which), which)
    say("integer words of kernels (constants in capitals)", sum(map(_words, files)))
    for node in NODES:
        which = files_of_node(files, node)
        say(f"files that name the node {node}", len(which), which)
    told = sorted(((len(files_of_node(files, node)), node) for node in nodes(files)), reverse=True)
    many_files = [f"{count:4} {node}" for count, node in told if count > MOST_FILES]
    say(f"nodes that more than {MOST_FILES} files name", len(many_files), many_files)
    for method in ACCESS_METHODS:
        which = files_naming(files, method)
        say(f"files that name the access method {method.split()[0]}", len(which), which)
    for technique in TECHNIQUES:
        which = importers(files, f"minidsms.streamon.{technique}")
        say(f"files outside that import streamon.{technique}", len(which), which)
    layouts = sorted({m for s in files for m in imports(s) if m.endswith(("_layout", "_rows", "_windows", "_window"))})
    for layout in layouts:
        which = importers(files, layout)
        if len(which) > 4:
            say(f"files that import {layout.removeprefix('minidsms.')}", len(which), which)
    return found


def _words(source: Source) -> int:
    """The names in capitals that a file of kernels gives to numbers: `HEAD, TAIL = range(2)`."""
    if source.room not in ("kernels", "joins"):
        return 0
    targets = [t for n in source.tree.body if isinstance(n, ast.Assign) for t in n.targets]
    names = [e for t in targets for e in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return sum(isinstance(e, ast.Name) and e.id.isupper() for e in names)


def _shown(f: Function, count: int) -> str:
    return f"{count:4} {f.source.name}:{f.name}"


def main(arguments: list[str]) -> int:
    """Print the counts of a folder, or of a commit."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.house", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path(__file__).parent.parent)
    parser.add_argument("--git", metavar="COMMIT", help="count the source of this commit, too, and show both")
    parser.add_argument("--details", action="store_true", help="tell which functions and files")
    options = parser.parse_args(arguments)
    before: dict[str, int] = {}
    if options.git:
        with tempfile.TemporaryDirectory() as folder:
            archive = subprocess.run(
                ["git", "archive", options.git, "minidsms"], cwd=options.folder, check=True, capture_output=True
            )
            subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
            print(f"--- {options.git}")
            before = report(Path(folder), options.details)
        print("--- now")
    after = report(options.folder, options.details)
    if before:
        print(f"--- {'before':>66} {'now':>7}")
        for name in dict.fromkeys((*before, *after)):
            print(f"{name:58} {before.get(name, 0):7,} {after.get(name, 0):7,}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
