"""With a port of their own, the metrics are on no other."""

from pathlib import Path

import httpx2

from tests.support.service_process import ServiceProcess, free_port


def test_the_metrics_are_on_their_own_port_alone(tmp_path: Path) -> None:
    port, metrics_port = free_port(), free_port()
    settings = {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": str(port),
        "METRICS_PORT": str(metrics_port),
    }
    with ServiceProcess(settings) as service:
        shown = httpx2.get(f"http://127.0.0.1:{metrics_port}/metrics")
        assert shown.status_code == 200
        assert 'cuepost_connections_refused_total{reason="head_timeout"} 0.0' in shown.text
        assert httpx2.get(f"http://127.0.0.1:{port}/metrics").status_code == 404
        assert httpx2.get(f"http://127.0.0.1:{port}/healthz").status_code == 200
        assert service.stop().code == 0
