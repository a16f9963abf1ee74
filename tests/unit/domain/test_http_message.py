"""How requests look on the wire."""

import pytest

from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.http_message import message, message_template
from cuepost.domain.receiver_url import parse_receiver_url

POLICY = EgressPolicy(ports=((443, 443), (8443, 8443)))
URL = parse_receiver_url("https://hooks.example.com:8443/cue?at=%7E&rate=5%25", POLICY)


def test_a_template_is_filled_with_headers_length_and_body() -> None:
    template = message_template(URL, [("user-agent", "100 %s")], ["webhook-id"])
    assert template % (b"7", 4, b"%d\r\n") == (
        b"POST /cue?at=%7E&rate=5%25 HTTP/1.1\r\n"
        b"host: hooks.example.com:8443\r\n"
        b"user-agent: 100 %s\r\n"
        b"webhook-id: 7\r\n"
        b"content-length: 4\r\n"
        b"\r\n"
        b"%d\r\n"
    )


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://hooks.example.com/", b"hooks.example.com"),
        ("https://[2606:4700::1111]/", b"[2606:4700::1111]"),
        ("https://[2606:4700::1111]:8443/", b"[2606:4700::1111]:8443"),
    ],
)
def test_the_host_header_names_a_port_only_where_it_is_not_the_usual_one(
    url: str, host: bytes
) -> None:
    made = message(parse_receiver_url(url, POLICY), [], b"")
    assert made == b"POST / HTTP/1.1\r\nhost: %b\r\ncontent-length: 0\r\n\r\n" % host


@pytest.mark.parametrize("broken", ["a\r", "a\nb"])
def test_a_line_break_is_refused_wherever_it_is(broken: str) -> None:
    for fixed, varying in (([(broken, "1")], []), ([("a", broken)], []), ([], [broken])):
        with pytest.raises(ValueError, match="line break"):
            message_template(URL, fixed, varying)
