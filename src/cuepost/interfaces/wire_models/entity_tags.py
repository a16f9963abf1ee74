"""Entity tags and the lists of them in conditions (RFC 9110, sections 8.8.3 and 13.1)."""

import re

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


def entity_tag(opaque: str) -> str:
    """A strong entity tag."""
    return f'"{opaque}"'


def tags_in(condition: str, *, weakly: bool) -> frozenset[str] | None:
    """The listed tags without quotes; None for `*`, which matches every tag.

    `If-None-Match` compares weakly; `If-Match` compares strongly, where a weak tag never matches.
    """
    if condition.strip() == "*":
        return None
    return frozenset(opaque for weak, opaque in _TAG.findall(condition) if weakly or not weak)
