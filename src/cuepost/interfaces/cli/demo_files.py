"""The files that the demo exports: a short film and its captions."""

from pathlib import Path

WIDTH, HEIGHT, FRAMES, RATE = 64, 36, 24, 12

CAPTIONS = """\
WEBVTT

00:00:00.000 --> 00:00:01.000
The harbour lies still.

00:00:01.000 --> 00:00:02.000
Far out, a light – and then none.
"""


def make_export(folder: Path) -> tuple[Path, Path]:
    """Write both in formats that video players read: uncompressed YUV4MPEG2 and WebVTT."""
    film, captions = folder / "film.y4m", folder / "captions.vtt"
    film.write_bytes(_film())
    captions.write_text(CAPTIONS, encoding="utf-8")
    return film, captions


def _film() -> bytes:
    head = f"YUV4MPEG2 W{WIDTH} H{HEIGHT} F{RATE}:1 Ip A1:1 C420jpeg\n".encode()
    return head + b"".join(b"FRAME\n" + _frame(number) for number in range(FRAMES))


def _frame(number: int) -> bytes:
    """A dark picture with one bright pixel that moves to the right with each frame."""
    sky = bytearray(16 + pixel // WIDTH for pixel in range(WIDTH * HEIGHT))
    sky[WIDTH * HEIGHT // 2 + number * WIDTH // FRAMES] = 235
    colour = len(sky) // 4
    return bytes(sky) + bytes([150]) * colour + bytes([110]) * colour
