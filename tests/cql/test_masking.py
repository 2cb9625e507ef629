"""Passwords do not stand in what is shown."""

from __future__ import annotations

import time

import pytest

import minidsms
from minidsms.cql.errors import CqlError, Error, quoted, shown
from minidsms.cql.masking import masked


@pytest.mark.parametrize(
    ("text", "as_shown"),
    [
        ("sftp://ann:pw@host/a@b, smb://bob:other@host", "sftp://ann:***@host/a@b, smb://bob:***@host"),
        ("https://ann:p/w@host", "https://ann:***@host"),
        ("host=a password=b dbname=c", "host=a password=*** dbname=c"),
        ("https://host/a?x=1&sig=b%2F#c", "https://host/a?x=1&sig=***#c"),
        ("""{'s3.secret_key': "a", 'http.X': 'b', 'x': 'c'}""", "{'s3.secret_key': '***', 'http.X': '***', 'x': 'c'}"),
        *(
            (same, same)
            for same in (
                "https://host:8080/a@b",
                "tcp://[::1]:90/x@y",
                "kafka://h:1,h2:2/t",
                "ann@host",
                "SELECT a:b@c",
                "v = 5, token = 'x'",
            )
        ),
    ],
)
def test_passwords_and_secret_options_are_masked_and_nothing_else(text: str, as_shown: str) -> None:
    assert masked(text) == as_shown and masked(as_shown) == as_shown


def test_every_error_is_masked_also_where_it_is_cut() -> None:
    address = "smb://ann:pw@host/" + "x" * 3000
    for text in (str(Error(f"cannot read {address}")), str(CqlError(address, hint=address)), shown(address)):
        assert "ann:***@host" in text and "pw" not in text
    assert quoted("smb://ann:" + "p" * 70 + "@host") == '"smb://ann:***@host"'


def test_the_marker_stands_under_its_place_in_a_line_with_a_password() -> None:
    with minidsms.connect() as db, pytest.raises(CqlError) as caught:
        db.execute("CREATE STREAM S (v INTEGER) FROM 'nix://ann:secret@host' WITH (`http.X` = 'key'); CREATE")
    _, line, marker = str(caught.value).split("\n")[:3]
    assert line.endswith(" FROM 'nix://ann:***@host' WITH (`http.X` = '***'); CREATE")
    assert marker.index("^") in (len(line), line.rindex("CREATE"))


@pytest.mark.parametrize("part", ["://a:b", "://a:@", "http.", "kafka.key", "password='", "a:b"])
def test_masking_takes_time_in_proportion_to_the_text(part: str) -> None:
    begun = time.process_time()
    masked(part * 100_000)
    assert time.process_time() - begun < 5
