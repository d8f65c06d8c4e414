"""Without the package cryptography: an error that names the extra, where it is needed, and nowhere else."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from kwire import capture
from kwire.capture.reading import Reading
from kwire.errors import MissingExtraError
from kwire.tls import Decryptor, KeyLog, protection

GOLDEN = Path(__file__).parents[2] / "golden" / "tls" / "kafka-4.3-kraft-kafka-python"


@pytest.fixture
def _without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protection, "require", protection.require.__wrapped__)
    monkeypatch.setattr("kwire.tls.decryptor.require", protection.require)
    for name in [name for name in sys.modules if name.partition(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)


@pytest.mark.usefixtures("_without")
def test_the_error_names_the_extra() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'kwire\[tls]'"):
        Decryptor(KeyLog())
    data = (GOLDEN / "tls-1.3.pcapng").read_bytes()
    with pytest.raises(MissingExtraError, match="tls"):
        list(capture.read(io.BytesIO(data), keylog=GOLDEN / "tls-1.3.keys"))


@pytest.mark.usefixtures("_without")
def test_a_capture_that_has_secrets_is_read_without_them_and_says_so() -> None:
    data, keys = (GOLDEN / "tls-1.3.pcapng").read_bytes(), (GOLDEN / "tls-1.3.keys").read_bytes()
    keys += bytes(-len(keys) % 4)
    size = int.from_bytes(data[4:8], "little")
    total = (20 + len(keys)).to_bytes(4, "little")
    block = b"\x0a\0\0\0" + total + b"KSLT" + len(keys).to_bytes(4, "little") + keys + total
    reading = Reading(io.BytesIO(data[:size] + block + data[size:]))
    found = [frame for frames in reading for frame in frames]
    assert {frame.status.name for frame in found} == {"ENCRYPTED"}
    (note,) = reading.notes()
    assert note.startswith("the capture has secrets of TLS: ")
    assert "kwire[tls]" in note


def test_captures_without_a_key_log_do_not_load_it() -> None:
    code = (
        "import sys\nfrom kwire import capture\n"
        "list(capture.read(open(sys.argv[1], 'rb')))\n"
        "print([name for name in ('cryptography', 'ssl') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, GOLDEN / "tls-1.2.pcap"], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
