"""`.demo`: cars on roads, to play with."""

from __future__ import annotations

from minidsms.cql.errors import Error
from minidsms.shell.commands.command import Arguments, Command
from minidsms.shell.feed import Feed
from minidsms.shell.modes.mode import ModeSpec
from minidsms.shell.session import Session
from minidsms.sources.driver import SourceDriver

_SECONDS = 1200
_SPEED = 10.0


def _demo(session: Session, arguments: Arguments) -> None:
    from minidsms.shell import demo_traffic
    from minidsms.sources.replay import Replay

    arguments.none()
    names = [name for name in ("Pos", "Roads") if session.db.catalog.kind_of(name) is not None]
    names += [name for name in ("roads", "fast") if name in session.db.queries]
    if names:  # before anything is declared: the demo is there as a whole or not at all
        reason = f"the demo declares names that are taken: {', '.join(names)}"
        raise Error(f"{reason}\nhelp: .save keeps the session's statements, .open begins anew")
    for statement in (*demo_traffic.DECLARATIONS, *demo_traffic.QUERIES):
        session.screen.note(f"{statement};")
        session.execute(statement)
    session.db.push("Roads", list(demo_traffic.ROADS), ts=0)
    source = demo_traffic.TrafficSource(_SECONDS, session.db.tick_ns)
    driver: SourceDriver = Replay([(source, session.db.stream_input("Pos"))])
    if session.is_interactive:
        session.watches.watch(session.query_named("roads"), session.mode, ModeSpec("table"), session.look())
        session.watches.watch(session.query_named("fast"), session.mode, ModeSpec("changelog"), session.look())
        session.screen.note("Ctrl-C stops watching, a second time the feed. Try .queries, .plan roads, .schema")
    session.begin_feed(Feed(session.db, driver, ["Pos"], _SPEED if session.is_interactive else None, session.clock))


DEMO = Command(
    "demo",
    ".demo",
    "twenty minutes of traffic, ten times as fast, through two queries",
    "Declares the stream Pos and the relation Roads, registers the queries roads and fast, watches both and feeds "
    "positions of cars. It needs no files. .open begins anew afterwards.",
    _demo,
    (),
    (".demo",),
)
