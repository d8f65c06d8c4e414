"""``kwire report``: the page, what it is held against, and mistakes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from made_captures import exchange
from packets import Connection, metadata, metadata_answer, pcap

from kwire.cli import main


def capture(path: Path, exchanges: int, client: str = "10.0.0.1") -> str:
    path.write_bytes(pcap(exchange(Connection(client=(client, 40_000)).open(), exchanges).packets))
    return str(path)


def figures(page: Path) -> dict[str, Any]:
    found = re.search('<script type="application/json" id="figures">(.*?)</script>', page.read_text())
    assert found is not None
    made: dict[str, Any] = json.loads(found.group(1))
    return made


def test_a_page_and_what_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before, now = capture(tmp_path / "before.pcap", 2), capture(tmp_path / "now.pcap", 7, "10.0.0.9")
    one, other, third = (tmp_path / f"{k}.html" for k in range(3))
    assert main(["report", before, "-o", str(one)]) == 0
    assert figures(one)["totals"]["requests"] == 2
    assert "What changed" not in one.read_text()
    assert main(["report", now, "-o", str(other), "--against", str(one)]) == 0
    assert main(["report", now, "-o", str(third), "--against", before]) == 0
    for page in (other, third):
        assert figures(page)["totals"]["requests"] == 7
        changed = page.read_text().partition('id="changes"')[2].partition("</section>")[0]
        assert re.search(r"clients</td><td>10\.0\.0\.9 [^<]*</td><td></td><td class=\"new\">new", changed)
        assert re.search(r"clients</td><td>10\.0\.0\.1 [^<]*</td><td></td><td class=\"gone\">gone", changed)
    assert main(["report", before, now]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")


def test_what_could_be_read_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = capture(tmp_path / "good.pcap", 3)
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(Path(good).read_bytes()[:-5])
    page = tmp_path / "page.html"
    assert main(["report", str(cut), "-o", str(page)]) == 2
    assert "cut.pcap" in capsys.readouterr().err
    assert figures(page)["totals"]["requests"] == 3
    assert "truncated" in page.read_text()
    page.unlink()
    assert main(["report", str(tmp_path / "none"), "-o", str(page)]) == 2
    assert main(["report", good, "-o", str(page), "--against", good + "x"]) == 2
    (tmp_path / "other.html").write_text("<!doctype html><p>other")
    assert main(["report", good, "-o", str(page), "--against", str(tmp_path / "other.html")]) == 2
    assert "no report of kwire" in capsys.readouterr().err
    assert main(["report", good, "-o", str(page), "--set", "none=1"]) == 2
    assert main(["report", good, "-o", str(page), "--target", "0.1"]) == 2
    assert list(tmp_path.glob("*.html")) == [tmp_path / "other.html"]
    # The page is there, and the exit code says that it is held against less.
    assert main(["report", good, "-o", str(page), "--against", str(cut)]) == 2
    assert "What changed" in page.read_text()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for wrong in ([], [good, "--against", "-"], [good, "--against", str(pipe)]):
        with pytest.raises(SystemExit):
            main(["report", *wrong])


def test_requests_of_a_version_are_those_of_all_clients(tmp_path: Path) -> None:
    # More clients than are told apart.
    made = Connection().open()
    for number in range(8_100):
        made.send(metadata(number, f"client-{number}")).answer(metadata_answer(number))
    path, page = tmp_path / "x.pcap", tmp_path / "x.html"
    path.write_bytes(pcap(made.packets))
    assert main(["report", str(path), "-o", str(page)]) == 0
    assert figures(page)["parts"]["versions"] == {"whole": True, "rows": {"Metadata v0": {"requests": 8_100}}}
    of_versions = page.read_text().split("<h3>Versions of APIs")[1].split("</section>")[0]
    assert "8,100" in of_versions
    assert " more." not in of_versions
