"""The command lines of `minidsms archive` and `minidsms replay`. Nothing heavy is imported here."""

from __future__ import annotations

from typing import Any


def add_archive(commands: Any) -> None:
    """The command's part of the command line."""
    parser = commands.add_parser("archive", help="look at archives, compact them, verify them")
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for action, meaning in (
        ("inspect", "show what the archives hold"),
        ("compact", "merge small files into large ones; nobody may write or read the archives meanwhile"),
        ("verify", "read everything and say what is wrong"),
    ):
        sub = actions.add_parser(action, help=meaning, description=meaning)
        sub.add_argument("folder", metavar="FOLDER", help="an archive, or a folder of archives")
        if action == "inspect":
            sub.add_argument("--files", action="store_true", help="show every file too")
