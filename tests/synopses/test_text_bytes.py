"""Texts as bytes stand in the order of the texts, whatever they hold, and however often they are written anew."""

from __future__ import annotations

from random import Random

import numpy as np

import minidsms
from minidsms.elements import Int64Array
from minidsms.kernels.text_order import WrittenTexts, compare_texts
from minidsms.machine_code import Int64s, Int64Table, kernel
from minidsms.synopses.text_bytes import TextBytes
from minidsms.values.coded import text_of_digits
from minidsms.values.dictionary import TextDictionary


@kernel
def compare_pairs(pairs: Int64Table, texts: WrittenTexts, order: Int64s) -> None:
    for i in range(pairs.shape[0]):
        order[i] = compare_texts(pairs[i, 0], pairs[i, 1], texts)


LETTERS = "\0\1\2\x7f\x80aé\uffff\U0001f600"


def agree(codes: Int64Array, values: list[object], bytes_: TextBytes, rng: Random) -> None:
    """Codes of these values, no two of them equal, stand in the values' order."""
    at = [rng.sample(range(len(codes)), 2) for _ in range(400)]
    order: Int64Array = np.zeros(len(at), np.int64)
    compare_pairs(codes[np.array(at)], bytes_.written, order)
    expected = [-1 if values[i] < values[j] else 1 for i, j in at]  # type: ignore[operator]
    assert order.tolist() == expected


def test_texts_stand_in_their_order_while_they_come_and_go() -> None:
    rng, dictionary = Random(1), TextDictionary()
    held: list[str] = []
    bytes_ = TextBytes(dictionary)

    def held_codes() -> Int64Array:
        return np.array([dictionary.code(text) for text in held], np.int64)

    for step in range(60):
        new = {"".join(rng.choices(LETTERS, k=rng.choice((0, 1, 2, 3, 40)))) for _ in range(rng.choice((1, 9, 40)))}
        bytes_.cover(np.array([0, *(dictionary.code(text) for text in new)], np.int64), held_codes)
        held = rng.sample(sorted({*held, *new}), rng.randrange(2, 60) % (len({*held, *new}) + 1))
        if step % 7 == 0:
            bytes_.forget()
            bytes_.cover(np.zeros(0, np.int64), held_codes)
        if len(held) > 1:
            agree(np.array([dictionary.code(text) for text in held]), [*held], bytes_, rng)
    assert len(bytes_.written.written) < 1 << 14, "what is gone is let go of"


def test_decimals_stand_in_their_order_whether_their_codes_are_computed_or_not() -> None:
    rng, dictionary = Random(2), TextDictionary()
    digits = sorted({rng.choice((-1, 1)) * rng.randrange(10 ** rng.randrange(1, 38)) for _ in range(300)})
    codes = np.array([dictionary.code_of_digits(d) for d in digits], np.int64)
    assert (codes < 0).any() and (codes > 0).any()
    bytes_ = TextBytes(dictionary)
    bytes_.cover(codes[:3], lambda: codes)
    agree(codes, [text_of_digits(d) for d in digits], bytes_, rng)


def test_the_largest_limit_and_offset_are_no_trouble() -> None:
    with minidsms.connect() as db:
        db.execute("CREATE STREAM S (t TEXT)")
        all_, none = (
            db.query(f"SELECT t FROM S [ROWS 2] ORDER BY t LIMIT {2**63 - 1} OFFSET {offset}")
            for offset in (0, 2**63 - 1)
        )
        db.push("S", [("b",), ("a",), ("c",)], ts=[1, 2, 3])
        db.advance(3)
        assert [(c.sign, *c.row) for c in all_.fetch()] == [(1, "b"), (1, "a"), (-1, "b"), (1, "c")]
        assert none.fetch() == []
