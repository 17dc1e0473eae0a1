"""Distinguished names in DER, made by hand: also such as no library would make."""

from __future__ import annotations

CN, ORG, OU, SERIAL = "2.5.4.3", "2.5.4.10", "2.5.4.11", "2.5.4.5"
UID, DC = "0.9.2342.19200300.100.1.1", "0.9.2342.19200300.100.1.25"
EMAIL = "1.2.840.113549.1.9.1"
_ENCODINGS = {0x0C: "utf-8", 0x14: "latin-1", 0x1E: "utf-16-be", 0x1C: "utf-32-be"}

Attribute = tuple[str, int, str]
"""(object id, tag, text)"""


def name(*parts: list[Attribute]) -> bytes:
    return _value(0x30, b"".join(_value(0x31, b"".join(map(_attribute, part))) for part in parts))


def string(tag: int, text: str) -> bytes:
    return _value(tag, text.encode(_ENCODINGS.get(tag, "ascii"), "replace"))


def _attribute(attribute: Attribute) -> bytes:
    number, tag, text = attribute
    return _value(0x30, _object_id(number) + string(tag, text))


def _object_id(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    content = b""
    for number in (first * 40 + second, *rest):
        group = bytes((number & 0x7F,))
        while number := number >> 7:
            group = bytes((number & 0x7F | 0x80,)) + group
        content += group
    return _value(0x06, content)


def _value(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 0x80:
        return bytes((tag, length)) + content
    size = (length.bit_length() + 7) // 8
    return bytes((tag, 0x80 | size)) + length.to_bytes(size, "big") + content
