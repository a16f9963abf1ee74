"""Exit code 0 while the process of this container is ready, whether it serves or delivers."""

import os
import sys
import urllib.request


def main() -> None:
    port = os.environ.get("CUEPOST_WORKER_PORT") or os.environ.get("CUEPOST_PORT", "8000")
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(f"http://127.0.0.1:{port}/readyz", timeout=5).close()
    except OSError as error:
        sys.exit(f"not ready: {error}")


if __name__ == "__main__":
    main()
