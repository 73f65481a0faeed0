"""Text that is safe to show: names in messages, on pages and on terminals."""

from secateur._util.text import printable, quoted, shortened


def test_ten_names_are_listed_in_full_and_more_are_counted():
    names = [f"x{k}" for k in range(11)]
    assert quoted(names[:10]).endswith("'x9'")
    assert quoted(names).endswith("'x9' and 1 more")


def test_characters_that_cannot_be_seen_are_escaped():
    assert printable("plain") == "plain"
    assert printable("\x1b[31mred\n", keep="\n") == "\\x1b[31mred\n"
    assert printable("\u202eturned") == "\\u202eturned"


def test_a_long_name_is_cut_with_an_ellipsis():
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"
