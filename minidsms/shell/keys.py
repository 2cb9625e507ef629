"""What the keys do beside editing: Enter, Ctrl-C, Ctrl-D, Alt-Enter."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.application import get_app
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
