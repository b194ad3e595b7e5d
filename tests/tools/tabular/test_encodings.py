"""Tests of finding an encoding: marks, UTF-8 to the last byte, stated guesses, and damage that is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.tabular.conftest import Desk
from tools.tabular.arguments import Reading
from tools.tabular.encodings import _guess

GERMAN = "Bestellung;Kunde;Straße\n1;Müller;Hauptstraße 5\n"
SAMPLES = {
    "german": ("cp1252", GERMAN), "one name": ("cp1252", "1;Müller;x\n"), "french": ("cp1252", "café;déjà vu;Élodie\n"),
    "spanish": ("cp1252", "España;niño;mañana\n"), "swedish": ("cp1252", "Åke;Östergötland;hög\n"),
    "many nations": ("cp1252", "Müller;José;Åse;François\n"), "euro": ("cp1252", "Preis;€ 5,00\n"),
    "typographic": ("cp1252", "price – 5 “quoted”\n"), "polish": ("cp1250", "Zamówienie;Łódź;Święty\n"),
    "czech": ("cp1250", "Zákazník;Řízení;Dvořák\n"), "hungarian": ("cp1250", "Megrendelő;Kovács Gergő;Szűcs\n"),
    "turkish": ("cp1254", "Sipariş;Müşteri;İstanbul\n"), "russian": ("cp1251", "Заказ;Клиент;Сумма\n1;Иванов;100\n"),
    "russian koi8": ("koi8_r", "Заказ;Клиент\n"), "greek": ("cp1253", "Παραγγελία;Πελάτης;Ποσό\n"),
    "hebrew": ("cp1255", "הזמנה;לקוח;סכום\n"), "chinese": ("gb18030", "订单号,客户,金额\n1,张三,100\n"),
    "one chinese name": ("gb18030", "a,张三\n"), "chinese prose": ("gb18030", "备注\n请尽快发货，谢谢！\n"),
    "traditional": ("big5", "訂單編號,客戶,金額\n1,陳先生,100\n"), "japanese": ("cp932", "注文番号,顧客\n1,スズキ\n"),
    "half width kana": ("cp932", "ｶﾀｶﾅ,ﾃｽﾄ\n"), "japanese euc": ("euc_jp", "ちゅうもん,すずき,カタカナ\n"),
    "korean": ("cp949", "주문번호,고객,금액\n1,김철수,100\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_a_short_sample_is_recognised(name: str) -> None:
    """A header and a row are enough to read what the usual exports of the world hold."""
    encoding, text = SAMPLES[name]
    assert text.encode(encoding).decode(_guess(text.encode(encoding))) == text


def test_a_guess_is_stated(desk: Desk) -> None:
    """An encoding that was guessed stands among the assumptions, one that is certain does not."""
    guessed = desk.describe(desk.file(GERMAN, encoding="latin-1"))
    assert guessed.encoding == "cp1252"
    assert any("guessed" in text for text in guessed.assumptions)
    assert desk.describe(desk.file(GERMAN, "u.csv")).assumptions == ()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252"])
def test_every_unicode_form_gives_the_same_table(desk: Desk, encoding: str) -> None:
    """Marks and wide characters leave no trace in names or cells."""
    result = desk.describe(desk.file(GERMAN, encoding=encoding))
    assert [column.name for column in result.columns] == ["Bestellung", "Kunde", "Straße"]
    assert result.columns[1].examples == ("Müller",)


def test_one_latin_name_at_the_end_of_a_large_file_is_seen(desk: Desk) -> None:
    """UTF-8 is proven over the whole file: 2 MB of ASCII before a Latin-1 name do not make it UTF-8."""
    body = b"id,name\n" + b"1,Smith and some more text to fill the line\n" * 50_000 + "2,Müller\n".encode("latin-1")
    result = desk.describe(desk.file(body))
    assert (result.encoding, result.rows) == ("cp1252", 50_001)


def test_damaged_utf8_is_refused_and_named(desk: Desk) -> None:
    """One bad byte in a UTF-8 file is damage, not another encoding: the message says which byte and where."""
    body = ("name,v\n" + "äöü,1\n" * 50).encode() + b"\xe4bc,2\n"
    failure = desk.refusal(desk.file(body))
    assert failure.code == "INVALID_INPUT"
    for part in ("UTF-8 with damage", "0xE4", "offset 457", "line 52", "encoding"):
        assert part in failure.message
    assert desk.describe(desk.file(body, "d2.csv"), reading=Reading(encoding="cp1252")).rows == 51


def test_a_wrong_encoding_is_refused_and_named(desk: Desk) -> None:
    """A named encoding is followed strictly, and the first byte that breaks it is told."""
    failure = desk.refusal(desk.file(GERMAN, encoding="latin-1"), reading=Reading(encoding="utf-8"))
    assert "0xDF" in failure.message
    assert "line 1" in failure.message


def test_an_unknown_encoding_names_known_ones(desk: Desk) -> None:
    """INVALID_ARGS, and what could have been meant."""
    failure = desk.refusal(desk.file(GERMAN), reading=Reading(encoding="utf-88"))
    assert failure.code == "INVALID_ARGS"
    assert "cp1252" in failure.message


@given(st.binary(max_size=300))
def test_any_bytes_get_a_guess(sample: bytes) -> None:
    """The guess is always a codec, and never an exception."""
    sample.decode(_guess(sample), "replace")
    assert _guess(sample)
