"""Enqueues jobs of one of the peers, in a separate process of the peers' environment."""

import importlib
import json
import resource
import sys
from pathlib import Path


def main(app: str, reported: str, result: str) -> None:
    job = json.loads(Path(reported).read_text(encoding="utf-8"))
    peer = importlib.import_module(f"benchmarks.peers.{app}")
    before = _cpu()
    began = peer.enqueue([(each["id"], each["body"]) for each in job["jobs"]], job["rate"])
    kept = {"began": began, "cpu": _cpu() - before}
    Path(result).write_text(json.dumps(kept), encoding="utf-8")


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(*sys.argv[1:])
