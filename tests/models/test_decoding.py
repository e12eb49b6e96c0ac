import pytest

from models.decoding import decode_bytes

RUSSIAN = "Дождь прекратился к вечеру, сообщили синоптики. Завтра в городе ожидается солнце."
CHINESE = "雨在傍晚停止，气象学家报告说。明天城市预计会有阳光，气温将上升到二十度。"
TAIWANESE = "雨在傍晚停止，氣象學家報告說。明天城市預計會有陽光，氣溫將上升到二十度。"
JAPANESE = "雨は夕方に止みました。明日は街に日が差し、気温は二十度まで上がるでしょう。"


def page(text: str, prolog: str = "") -> str:
    return f"{prolog}<html><head><title>{text}</title></head><body><p>{text * 4}</p></body></html>"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (RUSSIAN, "windows-1251"),
        (RUSSIAN, "koi8-r"),
        (CHINESE, "gb18030"),
        (CHINESE, "gbk"),
        (TAIWANESE, "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
        (JAPANESE, "iso-2022-jp"),
    ],
)
@pytest.mark.parametrize("where", ["header", "prolog", "meta", "nowhere"])
def test_legacy_encodings_are_read_wherever_they_are_declared(
    text: str, encoding: str, where: str
) -> None:
    if where == "nowhere" and encoding == "iso-2022-jp":
        pytest.skip("nobody sends it undeclared")
    meta = f"<meta http-equiv='content-type' content='text/html; charset={encoding}'>"
    prolog = f"<?xml version='1.0' encoding='{encoding}'?>\n"
    document = page(text, {"prolog": prolog, "meta": meta}.get(where, ""))
    header = f"text/html; charset={encoding}" if where == "header" else None
    decoded = decode_bytes(document.encode(encoding), header)
    assert decoded.text == document
    assert decoded.basis == ("statistics" if where == "nowhere" else where)


PORTUGUESE = "A chuva parou à noite; a previsão é de sol amanhã e as simulações não mudam até maio."
POLISH = (
    "Deszcz ustał wieczorem; jutro słońce, a prognozy się nie zmieniają, mówią synoptycy w Łodzi."
)


@pytest.mark.parametrize(
    ("text", "encoding"), [(PORTUGUESE, "cp1252"), (POLISH, "cp1250")], ids=["west", "east"]
)
def test_the_language_tells_western_from_central_europe(text: str, encoding: str) -> None:
    document = page(text)
    decoded = decode_bytes(document.encode(encoding))
    assert (decoded.text, decoded.encoding) == (document, encoding)


@pytest.mark.report("Novik/ruTorrent#3170")
@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (POLISH, "iso-8859-2"),
        (RUSSIAN, "iso-8859-5"),
        ("Η βροχή σταμάτησε το βράδυ", "iso-8859-7"),
        ("הגשם פסק בערב", "iso-8859-8"),
        ("Yağmur akşama doğru dindi, şehirde güneş bekleniyor", "iso-8859-9"),
        (PORTUGUESE + " 5 €", "iso-8859-15"),
    ],
)
@pytest.mark.parametrize("where", ["header", "prolog"])
def test_a_declared_part_of_iso_8859_is_read_as_that_part(
    text: str, encoding: str, where: str
) -> None:
    prolog = f"<?xml version='1.0' encoding='{encoding}'?>" if where == "prolog" else ""
    document = page(text, prolog)
    header = f"text/xml; charset={encoding}" if where == "header" else "text/xml"
    assert decode_bytes(document.encode(encoding), header).text == document


def test_valid_utf8_wins_over_a_lying_declaration() -> None:
    document = page(RUSSIAN, "<?xml version='1.0' encoding='windows-1251'?>")
    assert decode_bytes(document.encode(), "text/xml; charset=koi8-r").text == document


@pytest.mark.report("Novik/ruTorrent#3170")
def test_line_before_the_prolog_does_not_hide_its_encoding() -> None:
    document = page(RUSSIAN, "\n<?xml version='1.0' encoding='windows-1251'?>")
    assert decode_bytes(document.encode("windows-1251")).text == document


def test_header_wins_over_the_document() -> None:
    document = page(RUSSIAN, "<?xml version='1.0' encoding='windows-1251'?>")
    assert decode_bytes(document.encode("koi8-r"), "text/xml; charset=KOI8-R").text == document


def test_latin1_that_a_server_says_by_default_gives_way_to_the_document() -> None:
    document = page(RUSSIAN, "<meta charset=windows-1251>")
    decoded = decode_bytes(document.encode("windows-1251"), "text/html; charset=ISO-8859-1")
    assert decoded.text == document


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_marks_and_wide_characters_are_recognised(encoding: str) -> None:
    document = page(RUSSIAN)
    assert decode_bytes(document.encode(encoding), "text/html; charset=latin1").text == document


def test_a_damaged_character_does_not_turn_utf8_into_something_else() -> None:
    body = page(RUSSIAN).encode() + b"\xd0"
    decoded = decode_bytes(body, "text/html; charset=windows-1251")
    assert decoded.encoding == "utf-8"
    assert decoded.warnings == ("1 characters are not valid utf-8",)


def test_unknown_declared_encoding_is_passed_over_with_a_warning() -> None:
    document = page(RUSSIAN, "<meta charset='klingon'>")
    decoded = decode_bytes(document.encode("windows-1251"))
    assert decoded.text == document
    assert decoded.warnings


def test_noise_is_read_somehow() -> None:
    assert decode_bytes(bytes(range(256)) * 10).text
