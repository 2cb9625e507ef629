"""What `.help` says beside the commands: how to begin, what a window is, which keys do what."""

from __future__ import annotations

TOPICS: dict[str, tuple[str, str]] = {
    "start": (
        "a windowed join over a CSV file, step by step",
        """\
You know SQL. In CQL a query stays, and data passes by. Three things are new: streams, windows, and instants.

1. Look at your file. This prints a declaration that reads it; change what you like, and run it:
     .schema cars.csv
     CREATE STREAM Pos (at TIMESTAMP, car INTEGER, road TEXT, speed FLOAT) TIMESTAMP BY at FROM 'cars.csv';
   TIMESTAMP BY names the column that says when a row happened.

2. What you look up in is a relation, a table that may change:
     CREATE RELATION Roads (road TEXT, speed_limit FLOAT) FROM 'roads.csv';

3. A stream in FROM has a window, which says which of its rows count now. The rest is SQL:
     SELECT road, COUNT(*) AS reports, AVG(speed) AS mean, MAX(speed_limit) AS speed_limit
     FROM Pos [RANGE 30 SECONDS] JOIN Roads USING (road)
     GROUP BY road;
   The query runs from now on. What you see of it are its changes: + a row enters, - a row leaves.

4. Let the data in. This reads what was declared FROM files, a minute in each second; .feed alone as fast as it can:
     .feed SPEED 60

5. Look at the relation as it changes, instead of its changes; Ctrl-C stops watching, and a second one the feed:
     .mode table
   Then: .queries  .plan q1 once  .help windows  .save my.cql

No file at hand? .demo brings its own data.
""",
    ),
    "windows": (
        "which rows of a stream count at an instant",
        """\
  FROM S [RANGE 30 SECONDS]             the rows of the last 30 seconds
  FROM S [RANGE 1 MINUTE SLIDE 10 SECONDS]   the same, looked at every 10 seconds
  FROM S [TUMBLE 1 MINUTE]              each minute, shown when it is over; window_start, window_end
  FROM S [HOP 5 MINUTES EVERY 1 MINUTE]      the five minutes before each full minute
  FROM S [ROWS 100]                     the last 100 rows
  FROM S [PARTITION BY car ROWS 1]      the last row of each car
  FROM S [SESSION 30 MINUTES PARTITION BY user]   what each user has done without such a pause
  FROM S [NOW]                          the rows of the present instant
  FROM S [RANGE UNBOUNDED]              all rows so far; this is what FROM S alone means

A relation has no window. Around a query, or around what stands behind SELECT:
  ISTREAM(..)   what enters the answer, as a stream: it is never taken back
  DSTREAM(..)   what leaves it
  RSTREAM(..)   all of it, at every instant something happens
  For example: SELECT RSTREAM(car, speed_limit) FROM Pos [NOW] JOIN Roads USING (road);
""",
    ),
    "instants": (
        "when an answer is final, and why nothing comes",
        """\
Every row has an instant: the column of TIMESTAMP BY. An instant is answered
when it is closed: when every stream of the query has shown something later.
So an answer may wait

  - for the next row: .advance +10s says that nothing earlier comes any more;
  - for another stream of the join that has not come as far: .queries shows the lag, .streams how far each is.

Rows that come out of order are refused, unless the stream waits for them
(CREATE STREAM .. SLACK 5 SECONDS) or leaves them out (LATE DROP).
""",
    ),
    "keys": (
        "what the keys do",
        """\
  Enter         runs a command, or statements that end with ";"; else begins a new line
  Tab           completes: windows behind FROM S [, columns, statements, settings, files
  Right         takes the grey suggestion
  Up, Down      lines, then the history;  Ctrl-R searches it
  Ctrl-C        stops watching; then clears the line; then, at an empty line, stops the feed; then ends the
                query for which that waits
  Ctrl-D        at an empty line: leaves
  Alt-Enter     begins a new line wherever the cursor stands
  keys = "vi" in the configuration gives vi's keys (minidsms --print-config)
""",
    ),
    "statements": (
        "the statements of CQL",
        """\
  CREATE STREAM S (t TIMESTAMP, v FLOAT) TIMESTAMP BY t [SLACK ..] [LATE DROP] [FROM 'file'];
  CREATE RELATION R (k INTEGER, name TEXT) [FROM 'file'];
  CREATE VIEW V AS SELECT ..;
  CREATE QUERY q AS SELECT .. [INTO 'file'];
  SELECT ..;                           registers a query q1, q2, .. and watches it
  DROP QUERY q;  DROP STREAM S;  DROP RELATION R;  DROP VIEW V;
  SHOW STREAMS | RELATIONS | VIEWS | QUERIES | SETTINGS | FUNCTIONS;  DESCRIBE S;
  SHOW SOURCES | SINKS | CONSTRAINTS | SCREENS | SYSTEM;
  EXPLAIN SELECT ..;  EXPLAIN ANALYZE q;  SET name = value;
""",
    ),
}
