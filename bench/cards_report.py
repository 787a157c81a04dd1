"""Writes docs/cards.md from the cards in bench/data, which `kernel-env tasks audit` measured.

kernel-env tasks audit --device cpu --out bench/data/cards_cpu.jsonl
kernel-env tasks audit --device cuda:0 --compile --out bench/data/cards_cuda.jsonl
python -m bench.cards_report
"""

from collections.abc import Sequence
from pathlib import Path

from server.tasks.cards import Card, fastest_ms, faults_of, key_of, read_cards
from server.tasks.registry import load_tasks

from .markdown import table

DATA = Path(__file__).parent / "data"
PAGE = Path(__file__).resolve().parents[1] / "docs" / "cards.md"
TITLES = {"cuda": "On a GPU", "cpu": "On the CPU device"}
CLOSEST = 10

INTRODUCTION = """# Cards of the tasks

Written by `python -m bench.cards_report`; do not edit. `kernel-env tasks audit` measures, on one device and in one
process that is not a judge: what a task moves and computes, its floor (`t_min`), the tolerance its own noise asks for,
which answers without a kernel would pass under every kind of inputs, and how long PyTorch takes (eager, as a graph,
by `torch.compile`; the least counts). A floor that PyTorch beats is no floor. The size an agent sees is number 0.
"""


def page(cards_of: dict[str, Sequence[Card]], wanted: dict[str, int]) -> str:
    """The page.

    Args:
        cards_of: Cards by kind of device.
        wanted: Sizes there are, by kind of device.
    """
    parts = [INTRODUCTION]
    for kind, title in TITLES.items():
        cards = cards_of[kind]
        parts.append(f"## {title}\n")
        if not cards:
            parts.append(f"Missing: {wanted[kind]} sizes.\n")
            continue
        good = [card for card in cards if not faults_of(card)]
        seconds = sum(card.get("seconds", 0.0) for card in cards)
        first, missing = cards[0], wanted[kind] - len(cards)
        parts.append(
            f"{first['device']}, torch {first['torch']}, {first['date']}. {len(good)} of {len(cards)} sizes without "
            f"a fault, {missing} missing; {seconds:.0f} s in all.\n"
        )
        parts += [_faults(cards), _closest(good), _all(cards)]
    return "\n".join(part for part in parts if part)


def _faults(cards: Sequence[Card]) -> str:
    rows = [
        [f"`{card['task']}`", str(card["size"]), "; ".join(faults)] for card in cards if (faults := faults_of(card))
    ]
    return "### Faults\n\n" + table(["task", "size", "fault"], rows) if rows else ""


def _closest(cards: Sequence[Card]) -> str:
    ordered = sorted(cards, key=lambda card: fastest_ms(card) / card["floor_ms"])[:CLOSEST]
    rows = [[f"`{c['task']}`", str(c["size"]), f"{fastest_ms(c) / c['floor_ms']:.2f}"] for c in ordered]
    return "### Closest to the floor\n\n" + table(["task", "size", "PyTorch over floor"], rows)


def _all(cards: Sequence[Card]) -> str:
    rows = []
    for card in cards:
        if card.get("refused"):
            continue
        rows.append(
            [
                f"`{card['task']}`",
                str(card["size"]),
                f"`{card['precision']}`",
                f"{card['bytes_moved'] / 1e6:.4g}",
                f"{card['flops'] / 1e9:.4g}",
                f"{card['floor_ms']:.4g} ({card['bound']})",
                _ratio(card, "eager_ms"),
                _ratio(card, "graph_ms"),
                _ratio(card, "compiled_ms"),
                f"{card['factor']:.2f}",
                f"{card['output_rms']:.3g}",
            ]
        )
    head = [
        "task",
        "size",
        "contract",
        "MB",
        "GFLOP",
        "floor, ms",
        "eager",
        "graph",
        "compiled",
        "tolerance",
        "output rms",
    ]
    return "### All\n\nTimes are over the floor; the tolerance is over that of the contract.\n\n" + table(head, rows)


def _ratio(card: Card, name: str) -> str:
    value = card[name]
    return f"{value / card['floor_ms']:.2f}" if isinstance(value, float) else ("failed" if value else "")


def main() -> None:
    """Entry point."""
    tasks = list(load_tasks())
    cards_of: dict[str, Sequence[Card]] = {}
    wanted: dict[str, int] = {}
    for kind in TITLES:
        known = read_cards(DATA / f"cards_{kind}.jsonl")
        keys = [key_of(sized, kind) for task in tasks for sized in task.at_sizes(kind)]
        wanted[kind] = len(keys)
        others = [card for key, card in known.items() if key not in keys and "/" in card["task"]]  # of KernelBench
        cards_of[kind] = [*(known[key] for key in keys if key in known), *others]
        wanted[kind] += len(others)
    PAGE.write_text(page(cards_of, wanted), encoding="utf-8")


if __name__ == "__main__":
    main()
