"""The master key file: made once, readable by its owner alone, refused when it is not."""

from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cuepost.adapters.master_key_file import BadKeyFile, read_or_make
from cuepost.testing import RepeatableEntropy


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "master.key"


def test_the_first_start_makes_a_key_and_the_next_one_reads_it(path: Path) -> None:
    key = read_or_make(path, RepeatableEntropy("first"))

    assert key == RepeatableEntropy("first")(32)
    assert read_or_make(path, RepeatableEntropy("second")) == key
    assert path.read_bytes() == b64encode(key) + b"\n"
    assert path.stat().st_mode & 0o777 == 0o600


def test_nothing_else_is_left_behind(path: Path) -> None:
    read_or_make(path, RepeatableEntropy())

    assert list(path.parent.iterdir()) == [path]


def test_starts_at_the_same_time_end_with_the_same_key(path: Path) -> None:
    sources = [RepeatableEntropy(str(number)) for number in range(16)]
    with ThreadPoolExecutor(len(sources)) as threads:
        keys = set(threads.map(lambda source: read_or_make(path, source), sources))

    assert len(keys) == 1
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o610, 0o644, 0o666])
def test_a_file_that_is_open_to_others_is_refused(path: Path, mode: int) -> None:
    read_or_make(path, RepeatableEntropy())
    path.chmod(mode)

    with pytest.raises(BadKeyFile) as caught:
        read_or_make(path, RepeatableEntropy())

    assert str(caught.value) == (
        f"The master key file is open to others (mode {mode:04o}): run 'chmod 600 {path}', "
        "and assume that other users of this machine have read the key."
    )


@pytest.mark.parametrize(
    "content", [b"", b"not base64", b64encode(bytes(31)), b64encode(bytes(33))]
)
def test_a_file_that_holds_no_key_is_refused_and_left_alone(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    path.chmod(0o600)

    with pytest.raises(BadKeyFile) as caught:
        read_or_make(path, RepeatableEntropy())

    assert str(caught.value) == f"{path} does not hold a master key: 32 bytes as base64."
    assert path.read_bytes() == content
