"""A receiver in a thread that answers by a rule; over TLS if it gets a context."""

import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Rule = Callable[[bytes, Mapping[str, str]], int]


@contextmanager
def judging_receiver(rule: Rule, context: ssl.SSLContext | None = None) -> Iterator[int]:
    """Gives the port; a status below 0 closes the connection without an answer."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status = rule(body, {name.lower(): value for name, value in self.headers.items()})
            self.close_connection = True
            if status < 0:
                return
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("location", "https://example.com/\x1b[2Jelsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """The test tells."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """A client that trusts no one hangs up in the middle."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        serving.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            serving.join()
