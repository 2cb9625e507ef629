"""The shell without anybody at the keyboard: statements and commands from the command line, files or a pipe.

Every query is watched from the start, feeds run to their ends where they stand, and the sources that streams were
declared FROM are read when everything has been registered. It ends at the first error. Where all that is asked is what
there is, by SHOW, DESCRIBE and EXPLAIN, nothing is read, and answers that a folder keeps go on waiting.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.shell.configuration import Configuration
from minidsms.shell.feed import Feed
from minidsms.shell.harmless import error_line, harmless
from minidsms.shell.progress import progress_bar
from minidsms.shell.reading import read_text
from minidsms.shell.screen import PlainScreen
from minidsms.shell.session import Quit, Session
from minidsms.shell.splitting import split
from minidsms.shell.styles import Styles, wants_colour

if TYPE_CHECKING:
    from minidsms.process.safety import Safety


def run_batch(inputs: Sequence[tuple[str, str]], configuration: Configuration, safety: Safety) -> int:
    """Run inputs in their order; the exit code. inputs: ("text", statements) or ("file", path, "-" for a pipe)."""
    styles = Styles(wants_colour(configuration.color, sys.stdout))
    screen = PlainScreen(styles, Styles(wants_colour(configuration.color, sys.stderr)))
    session = Session(screen, configuration, safety, is_interactive=False, only_looks=_only_look(inputs))
    try:
        with progress_bar() as tell:
            session.on_step = lambda feed: tell(feed.fraction)
            try:
                session.run_text(configuration.init)
                for kind, text in inputs:
                    if kind == "text":
                        session.run_text(text)
                    elif text == "-":
                        session.run_text(read_text("-"))
                    else:
                        session.run_file(text)
            except Quit:
                pass
            if not session.only_looks:
                _read_sources(session)
        if not session.only_looks:
            session.watches.finish()
        code = 1 if any(query.failure is not None for query in session.db.queries.values()) else 0
        session.close()
        for name, sink in session.written():
            print(harmless(f"{name}: {counted(sink.rows, 'row')} written to {sink.path}"), file=sys.stderr)
        screen.flush()
    except BaseException as error:
        session.abandon()
        if not isinstance(error, Error):
            raise
        screen.error(error_line(error))
        return 1
    return code


def _only_look(inputs: Sequence[tuple[str, str]]) -> bool:
    """All that stands on the command line asks what there is."""
    from minidsms.cql import syntax
    from minidsms.cql.parser import parse

    if any(kind != "text" for kind, _ in inputs):
        return False
    try:
        each = [one for _, text in inputs for one in split(text)]
        statements = [statement for one in each if not one.is_command for statement in parse(one.text)]
    except Error:  # told where it is run
        return False
    if not statements or any(one.is_command for one in each):
        return False
    return all(isinstance(one, syntax.Look) for one in statements)


def _read_sources(session: Session) -> None:
    """Read what streams were declared FROM, where that has not been done; nothing comes after it."""
    driver = session.db.source_driver
    if not session.db.queries:
        return
    if driver is None or driver.has_ended:
        if session.configuration.db is None:  # a folder goes on another time
            session.db.finish_unfed()
        return
    for name in session.db.finish_unfed():
        session.screen.warn(harmless(f"nothing feeds {name}: it stays empty"))
    session.begin_feed(Feed(session.db, driver, driver.names(), None, session.clock))
