"""Golden scripts: every answer stated in tests/scripts, and the same by definition, whatever the batch size."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden_scripts import ScriptError, check, parse_scripts, rewritten

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.cqlt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_script_comes_out_as_written(path: Path, rewrite: bool) -> None:
    text = path.read_text(encoding="utf-8")
    if rewrite:
        path.write_text(rewritten(text, path.stem), encoding="utf-8")
        return
    for script in parse_scripts(text, path.stem):
        assert check(script) > 0, f"{script.title} states nothing"
        assert check(script, batch_size=1) > 0


def test_a_wrong_expectation_is_found_and_rewritten() -> None:
    text = "stream S(v INTEGER)\nquery SELECT v FROM S [NOW]\nfeed S @1 5\n# read this first\nexpect @1 +6\n"
    with pytest.raises(AssertionError, match=r"line 5: expect\s+stated @1 \+6\s+actual @1 \+5"):
        check(parse_scripts(text)[0])
    assert rewritten(text) == text.replace("+6", "+5")
    assert rewritten(rewritten(text)) == rewritten(text)


def test_an_error_that_does_not_come_is_found() -> None:
    script = parse_scripts("stream S(v INTEGER)\nrefused there is a stream\n")[0]
    with pytest.raises(AssertionError, match="it was carried out"):
        check(script)


def test_a_failure_that_is_not_expected_is_found() -> None:
    text = "stream S(v INTEGER)\nquery SELECT v + 9223372036854775807 FROM S [NOW]\nfeed S @1 5\nexpect nothing\n"
    with pytest.raises(AssertionError, match="the query failed: at instant 1"):
        check(parse_scripts(text)[0])


def test_a_word_that_is_no_directive_is_refused_with_its_line() -> None:
    with pytest.raises(ScriptError, match="line 2: no directive 'exepct'"):
        parse_scripts("stream S(v INTEGER)\nexepct @1 +5\n")


def test_a_row_of_the_wrong_width_is_refused() -> None:
    with pytest.raises(ScriptError, match="has 2 values, and the columns are: v INTEGER"):
        check(parse_scripts("stream S(v INTEGER)\nfeed S @1 5,6\n")[0])
