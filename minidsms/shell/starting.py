"""From the command line to a shell: configuration, safety, and whether somebody is at the keyboard."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace

from minidsms.cql.errors import Error


def start(options: argparse.Namespace) -> int:
    """Run the shell that the command line asks for; the exit code."""
    from minidsms.process.safety import Safety
    from minidsms.shell import configuration as configurations
    from minidsms.shell.modes.mode import read_mode
    from minidsms.shell.words import words_of

    if options.print_config:
        print(configurations.EXAMPLE, end="")
        return 0
    path = os.devnull if options.no_config else options.config
    configuration = configurations.load_configuration(path, os.environ)
    if options.allow and not (options.safe or configuration.safe):
        raise Error("--allow goes with --safe: without it files may be anywhere")
    changes: dict[str, object] = {}
    if options.mode:
        changes["mode"] = read_mode(words_of(options.mode))
    if options.tick:
        changes["settings"] = {**configuration.settings, "time_unit": options.tick}
    if options.safe or configuration.safe:
        changes["safe"] = True
        changes["allow"] = (*configuration.allow, *(options.allow or ()))
    if options.db is not None:
        changes["db"] = options.db
    configuration = replace(configuration, **changes)  # type: ignore[arg-type]
    safety = Safety(configuration.safe, configuration.allow)
    if options.inputs or not (sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()):
        from minidsms.shell.batch import run_batch

        return run_batch(options.inputs or [("file", "-")], configuration, safety)
    from minidsms.shell.interactive import InteractiveShell

    return InteractiveShell(configuration, safety).run()
