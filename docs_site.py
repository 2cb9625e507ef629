"""What `make docs` adds to the pages of docs/: the README as the first page, the experiments' results, the API, and
whatever files of the project the pages lead to.

A hook of MkDocs. Links that lead out of docs/ are turned to the copies that the site has of what they lead to.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent
ICON = "minidsms/web/static/icon.svg"
COPIED = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    ICON: "icon.svg",
}
"""Where files of the project stand in the site."""
DOCTEST = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")


def on_config(config: Any) -> Any:
    """Pages that the table of contents does not name stand at its end, by folder."""
    named = set(re.findall(r"[\w/-]+\.md", str(config["nav"])))
    folders: dict[str, list[str]] = {}
    for page in sorted((ROOT / "docs").rglob("*.md")):
        place = page.relative_to(ROOT / "docs").as_posix()
        if place not in named:
            folders.setdefault(posixpath.dirname(place).capitalize() or "More", []).append(place)
    config["nav"] += [{folder: pages} for folder, pages in sorted(folders.items(), key=lambda each: each[0] == "More")]
    config["nav"].append(
        {"Experiments": [f"experiments/results/{name}" for name in _results() if name.endswith(".md")]}
    )
    return config


def _results() -> list[str]:
    return sorted(path.name for path in (ROOT / "experiments" / "results").iterdir())


def on_files(files: Files, config: Any) -> Files:
    """Add the files that do not stand in docs/."""
    for name in _results():
        COPIED[f"experiments/results/{name}"] = f"experiments/results/{name}"
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for found in LINK.finditer(page.read_text(encoding="utf-8")):
            there = posixpath.normpath(posixpath.join(page.parent.relative_to(ROOT).as_posix(), found[2]))
            if not there.startswith(("docs/", "..")) and (ROOT / there).is_file():
                COPIED.setdefault(there, there)
    for source, place in COPIED.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    files.append(File.generated(config, "api.md", content=_api()))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Turn links: they were written for where the file stands in the project."""
    places = {place: source for source, place in COPIED.items()}
    home = posixpath.dirname(places.get(page.file.src_uri, f"docs/{page.file.src_uri}"))

    def turned(found: re.Match[str]) -> str:
        target = found[2]
        if "://" in target:
            return found[0]
        there = posixpath.normpath(posixpath.join(home, target))
        place = there.removeprefix("docs/") if there.startswith("docs/") else COPIED.get(there)
        if place is None:
            return found[0]
        return found[1] + posixpath.relpath(place, posixpath.dirname(page.file.src_uri) or ".") + found[3]

    return LINK.sub(turned, markdown)


def _api() -> str:
    """A page of the public names with their docstrings, in which doctests are set as such."""
    import minidsms
    from minidsms import connection, query

    parts = ["# Docstrings", *_entry("connect", minidsms.connect, 2)]
    for owner, names in ((connection.Connection, connection.PUBLIC), (query.Query, query.PUBLIC)):
        parts += _entry(owner.__name__, owner, 2)
        for name in sorted(names.split()):
            member = inspect.getattr_static(owner, name, None)
            if member is not None:
                parts += _entry(name, member, 3)
    return "\n\n".join(parts)


def _entry(name: str, thing: Any, level: int) -> list[str]:
    """Heading, how it is called, docstring."""
    parts = [f"{'#' * level} {name}"]
    if inspect.isfunction(thing):
        signature = str(inspect.signature(thing)).replace("(self, ", "(").replace("(self)", "()").replace("'", "")
        parts.append(f"`{name}{signature}`")
    text = inspect.cleandoc(thing.__doc__ or "")
    return [*parts, DOCTEST.sub(lambda found: f"```pycon\n{found[0]}\n```", text)]
