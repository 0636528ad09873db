"""What a server says of how a table is made, where that is not all text."""

from setl.systems.mysql.created_text import created_text


def test_text_stays_as_it_is():
    said = "CREATE TABLE `ü` (`e` enum('🦊','b''s') DEFAULT 'b''s' COMMENT '\\\\ \\0')"
    assert created_text(said.encode()) == said


def test_a_literal_of_bytes_is_written_in_hexadecimal():
    said = b"`\xc3\xbc` binary(9) DEFAULT '\\0\xff\\\\''\"\\n\\r\x1a%' COMMENT '\xc3\xa4'"
    assert created_text(said) == "`ü` binary(9) DEFAULT X'00ff5c27220a0d1a25' COMMENT 'ä'"
