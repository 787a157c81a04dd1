"""The page of cards: faults are named and counted, what is missing is said, PyTorch stands over the floor."""

from typing import Any

from bench.cards_report import page


def card(task: str, **changes: Any) -> dict[str, Any]:
    fine = {
        "task": task,
        "size": 0,
        "precision": "ieee",
        "device": "some CPU",
        "torch": "2.13.0",
        "date": "2026-12-01",
        "seconds": 2.0,
        "refused": None,
        "two_runs": "equal",
        "distributions": ["as_given"],
        "shortcuts": {"zeros": []},
        "own_output_fails": [],
        "bytes_moved": 2e6,
        "flops": 0.0,
        "floor_ms": 1.0,
        "bound": "memory",
        "eager_ms": 3.0,
        "graph_ms": 2.0,
        "compiled_ms": "no compiler",
        "factor": 1.0,
        "output_rms": 0.5,
    }
    return {**fine, **changes}


def test_faults_and_missing_sizes_are_counted() -> None:
    cards = [card("fine"), card("fast", eager_ms=0.5), {**card("odd"), "refused": "too large"}]
    text = page({"cpu": cards, "cuda": []}, {"cpu": 5, "cuda": 7})
    assert "1 of 3 sizes without a fault, 2 missing; 6 s in all." in text
    assert "Missing: 7 sizes." in text
    assert "| `fast` | 0 | PyTorch takes 0.50 of the floor |" in text
    assert "| `odd` | 0 | refused: too large |" in text
    assert "| `fine` | 0 | 2.00 |" in text
    assert "| `fine` | 0 | `ieee` | 2 | 0 | 1 (memory) | 3.00 | 2.00 | failed | 1.00 | 0.5 |" in text


def test_without_faults_there_is_no_table_of_them() -> None:
    assert "Faults" not in page({"cpu": [card("fine")], "cuda": []}, {"cpu": 1, "cuda": 0})
