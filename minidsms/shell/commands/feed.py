"""`.feed` and `.advance`: data in, and time on."""

from __future__ import annotations

import re

from minidsms.cql.errors import Error
from minidsms.elements import MIN_INSTANT
from minidsms.inputs.relation_input import RelationInput
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.feed import Feed, open_feed
from minidsms.shell.reading import read_instant
from minidsms.shell.session import Session
from minidsms.shell.words import Word

_SPEED = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)x?", re.IGNORECASE)


def _feed(session: Session, arguments: Arguments) -> None:
    words = list(arguments.words)
    if len(words) == 1 and words[0].says("STOP"):
        fed = [feed for feed in session.feeds if not feed.has_ended]
        session.stop_feeds()
        session.screen.note("the rest is left unread" if fed else "nothing is being fed")
        return
    speed = _take_speed(words, arguments)
    files = _take_files(words, arguments)
    if files:
        for _, path, _ in files:
            session.safety.check_source(path)
        for feed in session.feeds:
            both = [name for name, _, _ in files if name.lower() in (n.lower() for n in feed.names)]
            if both:
                raise Error(f"{both[0]} is being fed\nhelp: .feed stop leaves the rest unread")
        session.begin_feed(open_feed(session.db, files, speed, session.clock))
        return
    driver = session.db.source_driver
    if driver is None or driver.has_ended:
        said = "all declared FROM a source have been read" if driver is not None else "none is declared FROM a source"
        raise arguments.wrong(f"no stream or relation waits to be read: {said}")
    if any(feed.drives(driver) for feed in session.feeds):
        raise Error("the sources are being read\nhelp: .feed stop leaves the rest for later")
    session.begin_feed(Feed(session.db, driver, driver.names(), speed, session.clock))


def _take_speed(words: list[Word], arguments: Arguments) -> float | None:
    """Cut `SPEED x` off the end. None: as fast as possible."""
    if len(words) >= 2 and words[-2].says("SPEED"):
        match = _SPEED.fullmatch(words[-1].text)
        del_text = words[-1].text
        del words[-2:]
        if del_text.lower() == "max":
            return None
        if match is None or float(match[1]) <= 0:
            raise arguments.wrong(f'"{del_text}" is no speed: 1 is real time, 60 a minute in a second')
        return float(match[1])
    return None


def _take_files(words: list[Word], arguments: Arguments) -> list[tuple[str, str, str | None]]:
    """`S FROM 'file' [FORMAT f]`, several separated by commas."""
    files: list[tuple[str, str, str | None]] = []
    while words:
        if len(words) < 3 or not words[1].says("FROM"):
            raise arguments.wrong(f'"{words[0].text}" is not followed by FROM and a file')
        name, path = words[0].text, words[2].text
        del words[:3]
        format_ = None
        if len(words) >= 2 and words[0].says("FORMAT"):
            format_ = words[1].text
            del words[:2]
        files.append((name, path, format_))
        if words:
            if words[0].text != "," or words[0].is_quoted or len(words) == 1:
                raise arguments.wrong(f'"{words[0].text}" cannot stand there')
            del words[0]
    return files


def _advance(session: Session, arguments: Arguments) -> None:
    words = list(arguments.words)
    stream = None
    if len(words) == 2:
        stream = words.pop(0).text
    if len(words) != 1:
        raise arguments.wrong("an instant is missing" if not words else "give an instant, or a stream and an instant")
    text = words[0].text
    if text.startswith("+"):
        ts = _latest(session, stream) + _duration(session, text[1:], arguments)
    else:
        ts = read_instant(text, session.db.tick_ns, ".advance")
    session.db.advance(ts, stream)


def _latest(session: Session, stream: str | None) -> int:
    """The latest instant of the stream, or of all, that has come. Raises Error where there is none to go on from."""
    catalog = session.db.catalog
    if stream is not None:
        names = [stream]
    else:
        streams = [each.name for each in catalog.streams.values() if not each.is_system]
        names = streams or [each.name for each in catalog.relations.values()]
    inputs = [session.db.stream_input(name) for name in names]
    seen = [
        (i.greatest_ts, i.told if isinstance(i, RelationInput) else i.progress)
        for i in inputs
        if i.greatest_ts is not None and not i.ended
    ]
    if seen:
        relations = [name.lower() for name, each in zip(names, inputs) if isinstance(each, RelationInput)]
        # A heartbeat on all inputs is not told to each relation.
        return max(*map(max, seen), session.db.frontier((), relations) if relations else MIN_INSTANT)
    ended = [name for name, each in zip(names, inputs) if each.ended]
    if ended and len(ended) == len(names):
        reason = f"{', '.join(ended)}: read to the end, so no later time comes (docs/semantics T4)"
        raise Error(f"{reason}\nhelp: declare it without FROM and feed it: .feed {ended[0]} FROM 'file'")
    raise Error("no stream that goes on has seen anything yet\nhelp: give an instant, such as .advance 1000")


def _duration(session: Session, text: str, arguments: Arguments) -> int:
    match = re.fullmatch(r"([0-9]+)(ns|us|ms|s|m|h|d|)", text)
    if match is None:
        raise arguments.wrong(f'"+{text}" is no length of time: for example +500, +30s, +5m, +1h')
    if not match[2]:
        return int(match[1])
    from minidsms.cql.words import TICK_NS

    return int(match[1]) * TICK_NS[match[2]] // session.db.tick_ns


FEED = Command(
    "feed",
    ".feed S FROM 'file' [FORMAT f] [, T FROM 'file'] [SPEED x] | .feed [SPEED x] | .feed stop",
    "read a file into a stream, with a progress bar",
    "Rows go in in the order of their instants. SPEED 1 replays them in real time, SPEED 60 a minute in a second; "
    "without it they go in as fast as they can. Several files run side by side. The stream stays open: another file "
    "may go on where this one ends. Without a stream, .feed reads the sources that streams were declared FROM, to "
    "their ends. You can go on typing while it runs; Ctrl-C at an empty line, or .feed stop, leaves the rest unread.",
    _feed,
    ("stream", "FROM", "file", "SPEED"),
    (".feed Pos FROM 'cars.csv'", ".feed Pos FROM 'cars.csv' SPEED 60", ".feed"),
)

ADVANCE = Command(
    "advance",
    ".advance [stream] instant | .advance [stream] +length",
    "say that nothing earlier will come any more",
    "A heartbeat: windows move on and answers up to the instant are final. An instant is a number of ticks or an ISO "
    "time; +30s goes on from the latest there is.",
    _advance,
    ("stream",),
    (".advance 60000", ".advance Pos +30s"),
)
