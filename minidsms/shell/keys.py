"""What the keys do beside editing: Enter, Ctrl-C, Ctrl-D, Alt-Enter."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, get_common_complete_suffix
from prompt_toolkit.enums import DEFAULT_BUFFER
from prompt_toolkit.filters import Condition, has_focus, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from minidsms.shell.splitting import is_complete


def key_bindings(interrupt: Callable[[str], bool]) -> KeyBindings:
    """The bindings. interrupt: told what is typed; says whether to clear it."""
    bindings = KeyBindings()
    is_typing = has_focus(DEFAULT_BUFFER) & ~is_searching
    is_empty = Condition(lambda: not get_app().current_buffer.text)

    @bindings.add("enter", filter=is_typing)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        state = buffer.complete_state
        if state is not None and state.current_completion is not None:
            buffer.complete_state = None
            return
        text = buffer.text
        if is_complete(text) or text.strip().lower() in ("help", "quit", "exit", "?"):
            buffer.validate_and_handle()
        else:
            buffer.newline(copy_margin=True)

    @bindings.add("tab", filter=is_typing)
    def _(event: KeyPressEvent) -> None:
        complete_now(event.current_buffer)

    @bindings.add("escape", "enter", filter=is_typing)
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.newline(copy_margin=True)

    @bindings.add("c-c", filter=is_typing)
    @bindings.add("<sigint>")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if interrupt(buffer.text):
            buffer.reset()

    @bindings.add("c-d", filter=is_typing & is_empty)
    def _(event: KeyPressEvent) -> None:
        event.app.exit(exception=EOFError, style="class:exiting")

    return bindings


def complete_now(buffer: Buffer) -> None:
    """Take the only completion; else what all have in common, then the next one of the menu.

    What is offered while one types comes a little later; the key does not wait for it, nor does it get lost.
    """
    state = buffer.complete_state
    if state is not None and len(state.completions) == 1:
        buffer.apply_completion(state.completions[0])
    elif state is not None:
        buffer.complete_next()
    else:
        offered = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
        if len(offered) == 1:
            buffer.apply_completion(offered[0])
            return
        buffer.insert_text(get_common_complete_suffix(buffer.document, offered))
        buffer.start_completion(select_first=False)
