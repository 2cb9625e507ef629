"""Completion and colours for prompt_toolkit. Until the engine is loaded there are none, and typing does not wait."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.lexers import Lexer

from minidsms.shell.splitting import Input, split

if TYPE_CHECKING:
    from minidsms.shell.session import Session


class Aids(Completer, Lexer):
    """See the module. session: gives the session, or None while it is being loaded."""

    def __init__(self, session: Callable[[], Session | None]) -> None:
        self._session = session

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """What may stand at the cursor."""
        session = self._session()
        if session is None:
            return
        from minidsms.shell.command_completion import complete_command
        from minidsms.shell.completion import complete
        from minidsms.shell.names import Names

        allows = session.safety.allows
        before = document.text_before_cursor
        names = Names(session.db)
        begun = _begun(before)
        if begun is not None and begun.is_command:
            found = complete_command(before[begun.start :], names, allows)
        else:
            start = len(before) if begun is None else begun.start
            after = document.text_after_cursor.split(";")[0]
            found = complete(before[start:], after, names, allows, complete_event.completion_requested)
        for candidate in found:
            yield Completion(
                candidate.text,
                start_position=-candidate.length,
                display=candidate.shown or candidate.text,
                display_meta=candidate.meta,
            )

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        """The styles of each line."""
        if self._session() is None:
            return lambda number: [("", document.lines[number])] if number < len(document.lines) else []
        from minidsms.shell.highlighting import highlight, in_lines

        lines = in_lines(highlight(document.text))
        return lambda number: (
            [(f"class:cql.{kind}" if kind else "", text) for kind, text in lines[number]] if number < len(lines) else []
        )

    def invalidation_hash(self) -> Hashable:
        """Colours change when the engine has been loaded."""
        return self._session() is not None


def _begun(before: str) -> Input | None:
    """The input the cursor stands in, or None between two."""
    last = None
    for each in split(before):
        last = each
    if last is None or (last.is_complete and not last.is_command):
        return None
    # Behind a command's line the next input begins.
    return None if last.is_command and "\n" in before[last.start :] else last
