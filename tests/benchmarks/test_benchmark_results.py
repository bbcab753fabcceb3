"""What becomes of the numbers: tables with marks, a file, a page, a plot."""

from __future__ import annotations

import io
import json

import pytest
from rich.console import Console

from benchmarks import page, plot, report
from benchmarks.record import as_json, from_json
from benchmarks.sheets import failures, sheets
from tests.benchmarks.records import of_all_contenders, record

BEGIN, END = page.marks("measured")


def lines_of(number: int) -> list[list[str]]:
    return [line for group in list(sheets(record()))[number].groups for line in group]


def test_a_number_is_marked_as_it_reaches_its_target():
    find, insert = lines_of(0)
    assert find == ["find_one", "10", "0.14 ±4%", "1.40 ±4% ✓", "10.00", "28", "200", "20"]
    assert insert == ["insert_one", "10", "0.30 ±0% ✗", "-", "-", "60", "200", "-"]


def test_a_crowd_is_held_against_its_own_base():
    assert [line[:3] for line in lines_of(1)] == [
        ["gmongo", "100", "1.00 ±0%"],
        ["gmongo", "1000", "0.80 ±0% ✗"],
        ["gmongo", "10000", "0.70 ±0%"],
    ]


def test_a_stall_is_held_against_milliseconds():
    read, first = lines_of(2)
    assert read[2] == "4.25 ±3% ✓"
    assert first[4] == "0.50 ±0% ✗"


def test_all_measured_targets_are_listed():
    texts = [" ".join(line) for line in lines_of(3)]
    assert "find_one 10 gmongo / floor ≤ 1.60 1.40 ±4% ✓" in texts
    assert "throughput 1000 gmongo / gmongo at 100 ≥ 0.90 0.80 ±0% ✗" in texts
    assert len(texts) == 5


def test_failures_are_told_with_their_places():
    assert failures(record().rows()) == ["floor: no (insert_one x10)"]


def test_the_terminal_shows_all_tables_and_failures():
    console = Console(width=100, record=True, file=io.StringIO())
    report.show(record(), console)
    shown = console.export_text()
    for text in ("find_one", "A crowd on 100 connections", "read 15 MB: longest stall", "1.40 ±4%✓"):
        assert text in shown
    assert "failed floor: no (insert_one x10)" in shown


def test_a_run_comes_back_from_its_file():
    stored = json.loads(json.dumps(as_json(record())))
    assert from_json(stored) == record()
    reached = {(each["row"], each["under"]): each["reached"] for each in stored["targets"] if each["greenlets"] == 10}
    assert reached["find_one", "floor"] is True
    assert reached["insert_one", "pymongo"] is False
    assert reached["update_one", "pymongo"] is None


def test_the_page_keeps_what_was_written_by_hand(tmp_path):
    written = tmp_path / page.NAME
    written.write_text(f"# Mine\n\nbefore\n{BEGIN}\nold\n{END}\nafter\n")
    page.write(record(), tmp_path)
    page.write(record(), tmp_path)
    text = written.read_text()
    assert text.startswith("# Mine\n\nbefore\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert text.count("| find_one | 10 | 0.14 ±4% |") == 1
    assert "**Failed**: floor: no (insert_one x10)" in text


def test_run_of_all_contenders_renews_its_part_and_the_page_of_services(tmp_path):
    (tmp_path / "concurrency.md").write_text("before\n{}\nold\n{}\nafter\n".format(*page.marks("service")))
    page.write(record(), tmp_path)
    page.write(of_all_contenders(), tmp_path)
    text, service = ((tmp_path / name).read_text() for name in (page.NAME, "concurrency.md"))
    assert "| Go, `bson.M` | 30.0 | 0.70 ±2% |" in text and "| Rust, `Document` | 21.0 | 1.00 ±2% ✓ |" in text
    assert "| find_one | 10 | 0.14 ±4% |" in text and "Flask" not in text
    assert "| Flask, gunicorn/gevent, gmongo | 7 | 7 | 7 · 7 · 7 | 7 · 7 · 7 | 7 |" in service
    assert service.startswith("before\n") and service.endswith("after\n")


def test_a_page_without_its_marks_is_not_touched(tmp_path):
    written = tmp_path / page.NAME
    written.write_text(f"# Mine\n{BEGIN}\n")
    with pytest.raises(ValueError, match="measured: end"):
        page.write(record(), tmp_path)
    assert written.read_text() == f"# Mine\n{BEGIN}\n"


def test_the_same_numbers_make_the_same_plot(tmp_path):
    pytest.importorskip("matplotlib")
    plot.write(record(), tmp_path)
    first = (tmp_path / page.MEASURED.plot).read_bytes()
    plot.write(record(), tmp_path)
    assert (tmp_path / page.MEASURED.plot).read_bytes() == first
    assert b"<svg" in first
    assert "performance.svg" in (tmp_path / page.NAME).read_text()
