import pytest

from benchmarks.perf_samples import COLLECTOR, Sample, by_layer, layer_of, parsed
from benchmarks.profile import Process, by_folder
from benchmarks.sampled_frames import layer_of as folder_of

SCRIPT = """\
 4711/4711
\t          2ba7ad visit_reachable (/usr/lib/libpython3.11.so.1.0)
\t    7f8bbfe62ce0 [unknown] ([unknown])

 4711/4712
\tffffffff816e60eb tcp_sendmsg_locked ([kernel.kallsyms])
\tffffffff816b6678 ksys_write ([kernel.kallsyms])
\t           12319 __write+0x10 (/usr/lib/x86_64-linux-gnu/libc.so.6)

 4711/4712

"""


def sample(*frames: tuple[str, str], thread: int = 1) -> Sample:
    return Sample(1, thread, frames)


def test_what_perf_prints_is_read_sample_by_sample() -> None:
    first, second, third = parsed(SCRIPT.splitlines())
    assert (first.pid, first.thread) == (4711, 4711)
    assert first.frames[0] == ("visit_reachable", "/usr/lib/libpython3.11.so.1.0")
    assert [name for name, _ in second.frames] == [
        "tcp_sendmsg_locked",
        "ksys_write",
        "__write+0x10",
    ]
    assert (third.thread, list(third.frames)) == (4712, [])


@pytest.mark.parametrize(
    ("file", "layer"),
    [
        ("/usr/lib/x86_64-linux-gnu/libsqlite3.so.0.8.6", "SQLite"),
        ("/opt/lib/python3.11/lib-dynload/_sqlite3.cpython-311.so", "SQLite, Python's binding"),
        ("/usr/lib/libpython3.11.so.1.0", "interpreter"),
        ("/usr/bin/python3.13", "interpreter"),
        ("/venv/site-packages/uvloop/loop.cpython-311.so", "event loop"),
        ("/venv/site-packages/asyncpg/pgproto/pgproto.cpython-311.so", "asyncpg"),
        ("/usr/lib/x86_64-linux-gnu/libcrypto.so.3", "OpenSSL"),
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "libc"),
        ("[vdso]", "libc"),
        ("/venv/site-packages/msgspec/_core.cpython-311.so", "other C extensions"),
    ],
)
def test_code_outside_the_kernel_counts_for_its_library(file: str, layer: str) -> None:
    assert layer_of(sample(("any", file))) == layer


@pytest.mark.parametrize(
    ("chain", "layer"),
    [
        (("tcp_sendmsg", "sock_write_iter", "ksys_write"), "kernel: send"),
        (("ext4_file_write_iter", "vfs_write", "ksys_write"), "kernel: write to the log"),
        (("vfs_write", "__x64_sys_pwrite64"), "kernel: write to the store (pwrite)"),
        (("vfs_write", "__arm64_sys_pwrite64"), "kernel: write to the store (pwrite)"),
        (("ext4_sync_file", "__x64_sys_fdatasync"), "kernel: sync to disk"),
        (("__schedule", "do_epoll_wait"), "kernel: epoll"),
        (("clear_page", "asm_exc_page_fault"), "kernel: page faults"),
        (("do_syscall_64",), "kernel: other"),
    ],
)
def test_time_in_the_kernel_counts_for_what_was_asked_of_it(
    chain: tuple[str, ...], layer: str
) -> None:
    frames = [(each, "[kernel.kallsyms]") for each in chain]
    assert layer_of(sample(*frames, ("write", "/usr/lib/libc.so.6"))) == layer


def test_the_collector_is_told_apart_from_the_rest_of_the_interpreter() -> None:
    python = "/usr/lib/libpython3.11.so.1.0"
    assert layer_of(sample(("visit_decref", python))) == COLLECTOR
    assert layer_of(sample(("_PyEval_EvalFrameDefault", python))) == "interpreter"


def test_microseconds_are_shared_out_by_samples() -> None:
    samples = [sample(("a", "/libsqlite3.so")), *[sample(("b", "/libpython3.11.so"))] * 3]
    assert by_layer(samples, 200.0) == {"interpreter": 150.0, "SQLite": 50.0}
    in_threads = [*samples, *[sample(("c", "/libc.so.6"), thread=2)] * 4]
    assert Process("serve", 200.0, in_threads).in_main_thread == 100.0


def test_frames_count_for_our_folders_or_for_their_library() -> None:
    frames = {
        "/any/src/cuepost/adapters/storage/records/queue.py": 3,
        "/any/src/cuepost/adapters/storage/sqlite.py": 2,
        "/any/src/cuepost/adapters/telemetry.py": 1,
        "/any/src/cuepost/engine/lane_board.py": 1,
        "/venv/lib/python3.11/site-packages/starlette/routing.py": 2,
        "/usr/lib/python3.11/asyncio/events.py": 1,
    }
    assert by_folder(frames, 1_000.0) == {
        "adapters/storage": 500.0,
        "starlette": 200.0,
        "adapters/telemetry": 100.0,
        "engine": 100.0,
        "standard library": 100.0,
    }
    assert folder_of("/any/src/cuepost/interfaces/rest/openapi/document.py") == "interfaces/rest"
