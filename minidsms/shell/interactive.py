"""The interactive shell: a prompt, and a worker beside it.

The prompt stands before the engine is loaded; the engine loads while the user thinks.

Invariant: nothing that happens in a statement, a command or the background ends the shell but `.quit` and Ctrl-D.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
import traceback
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.cursor_shapes import ModalCursorShapeConfig
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.styles import Style

from minidsms import __version__
from minidsms.counted import counted
from minidsms.cql.errors import Error
from minidsms.cql.masking import masked
from minidsms.process.threads import begin
from minidsms.shell.configuration import Configuration
from minidsms.shell.harmless import error_line, harmless
from minidsms.shell.keys import key_bindings
from minidsms.shell.live_screen import Above, LiveScreen
from minidsms.shell.screen import cut_to
from minidsms.shell.styles import Styles, wants_colour
from minidsms.shell.typing_aids import Aids

if TYPE_CHECKING:
    from minidsms.process.safety import Safety
    from minidsms.shell.session import Session
    from minidsms.shell.worker import Worker

_STYLE = {
    "prompt": "bold",
    "picture": "",
    "bottom-toolbar": "noreverse bg:#303030 #d0d0d0",
    "toolbar.feed": "#87d7ff",
    "toolbar.watch": "#afd787",
    "toolbar.problem": "bold #ff8787",
    "toolbar.hint": "#a8a8a8",
    "cql.keyword": "bold ansiblue",
    "cql.operator": "bold ansimagenta",
    "cql.number": "ansicyan",
    "cql.text": "ansigreen",
    "cql.comment": "ansibrightblack",
    "cql.command": "bold ansicyan",
    "cql.symbol": "",
    "cql.name": "",
}
_MENU_LINES = 8
_WAITS = "waiting for the step at work; Ctrl-C takes the statement back"
_AT_WORK = (
    "waiting for the step at work; Ctrl-C ends its query",
    "the step at work goes on; Ctrl-C leaves it, and what it writes, as it is",
)
_INTERRUPTED = 130
"""The exit code."""
_BARE_COMMANDS = frozenset({"help", "quit", "exit", "?"})
_LEAVING = frozenset({".quit", ".exit", ".q"})
_REDRAWN_S = 1.0
"""How often the line below the prompt is drawn where nothing happens: how long a step takes is told there."""


class _FileHistory(FileHistory):
    """Lines that hold passwords are recalled as long as the shell runs, and not written."""

    def store_string(self, string: str) -> None:
        """See the base."""
        if masked(string) == string:
            super().store_string(string)


class InteractiveShell:
    """See the module."""

    def __init__(self, configuration: Configuration, safety: Safety) -> None:
        self._configuration = configuration
        self._safety = safety
        self._styles = Styles(wants_colour(configuration.color, sys.stdout))
        self._screen = LiveScreen(self._styles)
        self.session: Session | None = None
        self.worker: Worker | None = None
        self._loaded = threading.Event()
        self._load_failure: BaseException | None = None
        self._loading: threading.Thread | None = None
        self._stopping: list[object] = []
        self._aids = Aids(lambda: self.session)
        self._prompt = self._make_prompt()

    def _make_prompt(self) -> PromptSession[str]:
        configuration = self._configuration
        colour = self._styles.colour
        prompt: PromptSession[str] = PromptSession(
            message=self._message,
            multiline=True,
            prompt_continuation=self._continuation,
            history=self._history(),
            auto_suggest=AutoSuggestFromHistory() if configuration.suggestions else None,
            completer=self._aids,
            complete_while_typing=configuration.completion,
            lexer=self._aids if colour else None,
            key_bindings=key_bindings(self.interrupt),
            editing_mode=EditingMode.VI if configuration.keys == "vi" else EditingMode.EMACS,
            cursor=ModalCursorShapeConfig() if configuration.keys == "vi" else None,
            bottom_toolbar=self._toolbar if configuration.toolbar else None,
            style=Style.from_dict(_STYLE if colour else {"bottom-toolbar": "reverse"}),
            include_default_pygments_style=False,
            enable_open_in_editor=not self._safety.is_safe,
            enable_suspend=not self._safety.is_safe,
            search_ignore_case=True,
            refresh_interval=_REDRAWN_S if configuration.toolbar else 0,
        )
        prompt.app.after_render += self._load_behind
        keys = prompt.app.key_processor
        send = keys.send_sigint

        def send_if_running() -> None:
            # A signal that is handled when the prompt has ended finds nobody who could take it.
            if prompt.app.is_running and not prompt.app.is_done:
                send()

        keys.send_sigint = send_if_running  # type: ignore[method-assign]
        return prompt

    def _history(self) -> History:
        """The file of the configuration, or the memory where it cannot be written or must not be."""
        path = os.path.expanduser(self._configuration.history)
        if not path or not self._safety.allows(path):
            return InMemoryHistory()
        try:
            os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        except OSError as error:
            self._screen.note(harmless(f"no history is kept: {path}: {error.strerror}"))
            return InMemoryHistory()
        return _FileHistory(path)

    # --------------------------------------------------------------------------------------------------- loading

    def _load_behind(self, app: Any = None) -> None:
        """The prompt stands: load the engine, once. A terminal that cannot draw does not say when that is."""
        if self._loading is None:
            self._loading = threading.Thread(target=self._load, name="minidsms-shell-load", daemon=True)
            try:
                self._loading.start()
            except RuntimeError:  # the system gives no thread; the worker needs one too, and says so
                self._load()

    def _load(self) -> None:
        try:
            from minidsms.shell.session import Session
            from minidsms.shell.worker import Turn, Worker

            session = Session(self._screen, self._configuration, self._safety, is_interactive=True)
            self.turn = Turn()
            self.worker = Worker(session, self.turn, self._draw_anew, self._picture_room)
            self.session = session
            self._run(self._configuration.init)
            begin(self.worker)
        except BaseException as error:
            self._load_failure = error
        finally:
            self._loaded.set()

    # --------------------------------------------------------------------------------------------------- drawing

    def _draw_anew(self) -> None:
        """There is something new to draw; from any thread."""
        # A prompt that ends meanwhile has closed its loop, or has none any more; the next one draws all.
        with contextlib.suppress(RuntimeError, AttributeError):
            self._prompt.app.invalidate()

    def _message(self) -> StyleAndTextTuples:
        """Pictures, then the prompt. Where the terminal is low, the menu makes room."""
        self._prompt.reserve_space_for_menu = max(0, min(_MENU_LINES, (self._rows() - 6) // 2))
        message: StyleAndTextTuples = []
        worker = self.worker
        # What was drawn in place does not stay behind when the line is done.
        if worker is not None and not self._prompt.app.is_done:
            width = self._prompt.app.output.get_size().columns - 1
            for picture in worker.pictures:
                message += [("class:picture", cut_to(line, width) + "\n") for line in picture]
        return [*message, ("class:prompt", self._configuration.prompt)]

    def _continuation(self, width: int, line: int, wraps: int) -> str:
        return " " * width if wraps else ("..." if width > 3 else ".").rjust(width - 1) + " "

    def _picture_room(self) -> int:
        """Lines pictures may take, so that prompt, menu and toolbar have theirs."""
        typed = self._prompt.default_buffer.document.line_count
        return self._rows() - self._prompt.reserve_space_for_menu - 2 - typed

    def _rows(self) -> int:
        return self._prompt.app.output.get_size().rows

    def _toolbar(self) -> StyleAndTextTuples:
        if self.worker is None:
            return [("class:toolbar.hint", " loading ..")]
        from minidsms.shell.toolbar import fitted, with_work

        watched, feeds = self._unasked()
        parts = with_work(self.worker, bool(watched), bool(feeds))
        if self._prompt.default_buffer.document.line_count > 1:
            parts = [("hint", "; ends the statement, Ctrl-C drops it"), *(part for part in parts if part[0] != "hint")]
        shown: StyleAndTextTuples = []
        for kind, text in fitted(parts, self._prompt.app.output.get_size().columns):
            shown += [("", " \u2502 " if shown else " "), (f"class:toolbar.{kind}", text)]
        return shown

    # ------------------------------------------------------------------------------------------------ interrupts

    def interrupt(self, typed: str) -> bool:
        """Ctrl-C: stop what is watched, else clear what is typed, else stop what is fed, else end the query that keeps
        these waiting. Whether to clear the line.
        """
        session, worker = self.session, self.worker
        if session is None or worker is None:
            return True
        watched, feeds = self._unasked()
        if watched:
            self._stopping += watched
            worker.ask(_stop_watching)
            return False
        if typed:
            return True
        if feeds:
            self._stopping += feeds
            worker.ask(_stop_feeding)
            return False
        if worker.is_behind:
            session.db.allowance.expire()
            self._screen.note("the query at work is told to end")
        else:
            self._screen.note(".quit or Ctrl-D leaves")
        return True

    def _unasked(self) -> tuple[list[object], list[object]]:
        """What is watched, and what is fed, but for what has been asked to stop a moment ago."""
        session = self.session
        if session is None:
            return [], []
        watched = [*session.watches.all(), *([session.plan_shown] if session.plan_shown is not None else [])]
        feeds = list(session.feeds)
        self._stopping = [each for each in self._stopping if each in watched or each in feeds]
        stopping = self._stopping
        return [each for each in watched if each not in stopping], [each for each in feeds if each not in stopping]

    # -------------------------------------------------------------------------------------------------- the loop

    def run(self) -> int:
        """Read and run until the user leaves."""
        bold = self._styles("bold", "minidsms")
        print(f"{bold} {__version__}: continuous queries in CQL. Statements end with a semicolon, commands begin")
        print("with a dot: .help start for the first five minutes, .demo for something to see.")
        if self._safety.is_safe:
            folders = ", ".join(self._safety.folders) or "no folder"
            print(harmless(f"Safe mode: files may be in {folders}."))
        with unechoed(), contextlib.redirect_stderr(Above(self._screen)):
            try:
                while self._is_interrupted():
                    pass
            finally:
                has_ended = self._end()
        if not has_ended:
            os._exit(_INTERRUPTED)  # the interpreter would wait for what the worker holds
        return 0

    def _is_interrupted(self) -> bool:
        """Read and run until the user leaves; True where an interrupt comes when there is nothing to interrupt."""
        try:
            while self._goes_on():
                pass
        except KeyboardInterrupt:
            return True
        return False

    def _goes_on(self) -> bool:
        """Read once, run it; False to leave."""
        text = self._read()
        if text is None or text.strip().lower() in _LEAVING:
            return False
        self._load_behind()
        self._loaded.wait()
        if self._load_failure is not None:
            raise self._load_failure
        return self._run(text)

    def _read(self) -> str | None:
        """What is typed next; None at the end."""
        try:
            text = self._prompt.prompt(pre_run=lambda: self._screen.prompt_begins(self._prompt.app))
        except EOFError:
            return None
        except (KeyboardInterrupt, asyncio.CancelledError):
            # The latter where several signals come as the prompt begins or ends.
            return ""
        finally:
            self._screen.prompt_ends()
        word = text.strip().lower().removesuffix(";")
        return f".{word}" if word in _BARE_COMMANDS else text

    def _run(self, text: str) -> bool:
        """Run what was typed; False to leave."""
        from minidsms.shell.session import Quit

        assert self.session is not None and self.worker is not None
        try:
            with self.turn.foreground(lambda: self._screen.note(_WAITS)):
                self.session.run_text(text)
        except Quit:
            return False
        except KeyboardInterrupt:
            self.turn.let_go()
            self._screen.note("interrupted")
        except Error as error:
            self._screen.error(error_line(error))
        except Exception as error:
            if "MINIDSMS_DEBUG" in os.environ:
                self._screen.write(harmless(traceback.format_exc()))
            self._screen.error(error_line(error))
        self.worker.wake()
        return True

    def _end(self) -> bool:
        """False where the worker's step does not end: then nothing can be closed."""
        if self._loading is not None:
            self._loaded.wait()
        if self.worker is not None and not self._end_worker(self.worker):
            return False
        if self.session is not None:
            self.session.close()
            for name, sink in self.session.written():
                self._screen.note(harmless(f"{name}: {counted(sink.rows, 'row')} written to {sink.path}"))
        self._screen.flush()
        return True

    def _end_worker(self, worker: Worker) -> bool:
        """Wait for its present step, whose query Ctrl-C ends; whether it has ended when Ctrl-C comes once more: it may
        write to a pipe that nobody reads.
        """
        from minidsms.shell.toolbar import LONG_S

        told, interrupts = -1, 0
        while True:
            try:
                if worker.end(None if told == interrupts else LONG_S):
                    return True
                if told < interrupts:
                    self._screen.note(_AT_WORK[interrupts])
                    self._screen.flush()
                    told = interrupts
            except KeyboardInterrupt:
                assert self.session is not None
                self.session.db.allowance.expire()
                interrupts += 1
                if interrupts == len(_AT_WORK):
                    return False


@contextlib.contextmanager
def unechoed() -> Iterator[None]:
    """The terminal shows nothing by itself: what is typed while a statement runs appears in the next prompt."""
    try:
        import termios

        before = termios.tcgetattr(sys.stdin)
    except (ImportError, OSError, ValueError, termios.error):
        yield
        return
    quiet = [*before]
    quiet[3] &= ~termios.ECHO
    termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def _stop_watching(session: Session) -> None:
    """Print the last picture of what is watched, and watch no more."""
    pictures = session.watches.pictures(10_000)
    names = session.watches.names()
    for name in names:
        session.watches.unwatch(name)
    for picture in pictures:
        session.results.lines(picture)
    if session.plan_shown is not None:
        session.results.lines(session.plan_shown[1].draw())
        session.plan_shown = None
    if names:
        runs = "runs on" if len(names) == 1 else "run on"
        session.screen.note(harmless(f"no longer watched: {', '.join(names)}, which {runs}; .watch shows again"))


def _stop_feeding(session: Session) -> None:
    from minidsms.shell.session import said_of

    for feed in session.feeds:
        session.screen.note(harmless(f"{said_of(feed)}; the rest is left unread"))
    session.stop_feeds()
