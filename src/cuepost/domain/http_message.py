"""The bytes of a request: an HTTP/1.1 POST."""

from collections.abc import Iterable

from cuepost.domain.receiver_url import ReceiverUrl

_DEFAULT_PORTS = {"https": 443, "http": 80}


def message_template(
    url: ReceiverUrl, fixed: Iterable[tuple[str, str]], varying: Iterable[str]
) -> bytes:
    """A template for `%` with the values of the varying headers, the body's length, and the body.

    The caller makes sure that these values have no line breaks; everything else is checked here.
    """
    head = [("host", _authority(url)), *fixed]
    lines = [f"POST {url.target} HTTP/1.1", *(f"{name}: {value}" for name, value in head)]
    names = [*varying]
    joined = "".join([*lines, *names])
    if "\r" in joined or "\n" in joined:
        raise ValueError("a line break in a header would start another header")
    escaped = [line.replace("%", "%%") for line in lines]
    places = [*(f"{name}: %b" for name in names), "content-length: %d", "", "%b"]
    return "\r\n".join([*escaped, *places]).encode("ascii")


def message(url: ReceiverUrl, headers: Iterable[tuple[str, str]], body: bytes) -> bytes:
    return message_template(url, headers, ()) % (len(body), body)


def _authority(url: ReceiverUrl) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port == _DEFAULT_PORTS[url.scheme] else f"{host}:{url.port}"
