"""What is typed: cut into inputs, into words, and coloured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minidsms.cql.errors import Error
from minidsms.shell.highlighting import highlight, in_lines
from minidsms.shell.screen import cut_to
from minidsms.shell.splitting import is_complete, split
from minidsms.shell.words import words_of

TYPED = st.text(alphabet="aS.;'\"`-# \n[(1,é", max_size=40)


@given(TYPED)
def test_inputs_stand_in_the_text_in_order_and_nothing_else_is_left(text: str) -> None:
    at = 0
    for each in split(text):
        between = text[at : each.start]
        assert text[each.start :].startswith(each.text) and each.text
        outside = "".join(line.split("--")[0].split("#")[0] for line in between.split("\n"))
        assert not outside.strip(" \n;")
        at = each.start + len(each.text)


@given(TYPED)
def test_colours_leave_the_text_as_it_is(text: str) -> None:
    assert "".join(piece for _, piece in highlight(text)) == text
    assert ["".join(piece for _, piece in line) for line in in_lines(highlight(text))] == text.split("\n")


@pytest.mark.parametrize("text", ["", "SHOW VIEWS;", ".mode table", "SELECT ';' FROM S;", "-- nothing", ";", " \n"])
def test_what_is_complete_may_be_run(text: str) -> None:
    assert is_complete(text)


@pytest.mark.parametrize("text", ["SELECT", "SELECT 'a;", "SHOW VIEWS; SELECT", "SELECT a -- ;", "SELECT `;"])
def test_what_is_not_waits_for_more(text: str) -> None:
    assert not is_complete(text)


def test_a_dot_begins_a_command_only_where_an_input_begins() -> None:
    assert [i.is_command for i in split(".mode csv\nSELECT S\n.a FROM S; .quit")] == [True, False, True]


def test_keywords_are_told_from_names_as_the_grammar_tells_them() -> None:
    kinds = dict((text, kind) for kind, text in highlight("SELECT rows FROM S [ROWS 5]"))
    assert kinds["rows"] == "name" and kinds["ROWS"] == "keyword" and kinds["5"] == "number"


def test_quoted_words_keep_blanks_and_doubled_quotes() -> None:
    words = words_of("S FROM 'it''s, mine.csv', T")
    assert [(w.text, w.is_quoted) for w in words][2:4] == [("it's, mine.csv", True), (",", False)]
    with pytest.raises(Error, match="not closed"):
        words_of("FROM 'a")


def test_lines_are_cut_by_the_cells_they_take() -> None:
    assert cut_to("世界世界", 6) == "世界.."
    assert cut_to("世界", 4) == "世界"
