"""A real nginx with the configuration of the operator's kit."""

import os
import ssl
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx2

from tests.support.certificates import Authority
from tests.support.operator_tools import program
from tests.support.service_process import free_port

KIT = Path(__file__).parents[2] / "deploy" / "nginx"
PATIENCE_SECONDS = 60.0
MAIN = """
pid {folder}/nginx.pid;
error_log {folder}/error.log;
{user}
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/cuepost.conf;
}}
"""


@dataclass(frozen=True, slots=True)
class Proxy:
    folder: Path
    url: str
    authority: Path

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.authority)

    def client(self, key: str = "") -> httpx2.Client:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return httpx2.Client(
            base_url=self.url, headers=headers, verify=self.trust, timeout=30, trust_env=False
        )


def configured(
    folder: Path, api_ports: tuple[int, int], name: str = "localhost", kit: str = "cuepost.conf"
) -> Proxy:
    """The files of the kit, with the ports, names and folders of this test in them."""
    port, plain, authority = free_port(), free_port(), Authority()
    chain = folder / "chain.pem"
    chain.write_bytes(authority.server_chain(name))
    authority.write_to(folder / "authority.pem")
    text = (KIT / kit).read_text()
    for there, here in {
        "listen 443": f"listen 127.0.0.1:{port}",
        "listen 80": f"listen 127.0.0.1:{plain}",
        "    listen [::]:443 ssl;\n": "",
        "    listen [::]:80;\n": "",
        "127.0.0.1:8000": f"127.0.0.1:{api_ports[0]}",
        "127.0.0.1:8010": f"127.0.0.1:{api_ports[1]}",
        "/etc/ssl/cuepost/fullchain.pem": str(chain),
        "/etc/ssl/cuepost/privkey.pem": str(chain),
        "/etc/nginx/cuepost-locations.conf": str(KIT / "locations.conf"),
        "cuepost.example.com": name,
    }.items():
        assert there in text, there
        text = text.replace(there, here)
    (folder / "cuepost.conf").write_text(text)
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder, user=user))
    return Proxy(folder, f"https://{name}:{port}", folder / "authority.pem")


@contextmanager
def running_nginx(proxy: Proxy) -> Iterator[None]:
    nginx = program("nginx")
    arguments: list[str | Path] = [
        "-p",
        proxy.folder,
        "-c",
        proxy.folder / "nginx.conf",
        "-g",
        "daemon off;",
    ]
    process = subprocess.Popen(
        [nginx.path, *arguments], env=nginx.environ, stderr=subprocess.DEVNULL
    )
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (proxy.folder / "nginx.pid").exists() or not (
            (proxy.folder / "nginx.pid").read_text().strip()
        ):
            assert process.poll() is None, (proxy.folder / "error.log").read_text()
            assert time.monotonic() < deadline
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)
