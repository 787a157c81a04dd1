"""Nothing that the hidden values follow from is in a candidate's memory, or in what it can read of other processes."""

from kernel_env.terms import Language, Verdict
from server.evaluator.evaluator import Evaluator
from server.evaluator.results import Submission
from server.judge.distributions import Distribution
from server.judge.seeds import Seeds
from tests.evaluations import small_task

SEARCH = r'''
"""Searches its own memory, and every process it can see, for bytes it holds in no form but inverted."""

import ctypes
import os

import torch
import torch.nn as nn

from kernel_env import native

INVERTED = [bytes.fromhex(text) for text in NEEDLES]
search = native.load(
    r"""
#include <cmath>
extern "C" void count(int64_t start, int64_t bytes, int64_t inverted, const int64_t* lengths, int64_t upto,
                      int64_t* found) {
    const auto* p = reinterpret_cast<const unsigned char*>(start);
    const auto* all = reinterpret_cast<const unsigned char*>(inverted);
    bool may_begin[256] = {};
    for (int64_t k = 0; k < upto; ++k) may_begin[static_cast<unsigned char>(~all[64 * k])] = true;
    for (int64_t i = 0; i < bytes; ++i) {
        if (!may_begin[p[i]]) continue;
        for (int64_t k = 0; k < upto; ++k) {
            const auto* n = all + 64 * k;
            int64_t j = 0;
            while (j < lengths[k] && i + j < bytes && p[i + j] == static_cast<unsigned char>(~n[j])) ++j;
            if (j == lengths[k]) ++found[k];
        }
    }
}
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
""",
    {
        "count": "int64_t start, int64_t bytes, int64_t inverted, const int64_t* lengths, int64_t upto, int64_t* found",
        "run": "const float* x, float* y, int64_t n",
    },
)


HELD = ctypes.create_string_buffer(b"".join(needle.ljust(64, b"\xff") for needle in INVERTED))
LENGTHS = torch.tensor([len(needle) for needle in INVERTED])


def in_range(start, size):
    counts = torch.zeros(len(INVERTED), dtype=torch.int64)
    search.count(start, size, ctypes.addressof(HELD), LENGTHS, len(INVERTED), counts)
    return counts


def in_own_memory():
    found = torch.zeros(len(INVERTED), dtype=torch.int64)
    scanned = 0
    for line in open("/proc/self/maps"):
        span, rights, *_ , = line.split()
        if "r" not in rights or "[v" in line:  # vvar cannot be read
            continue
        start, end = (int(part, 16) for part in span.split("-"))
        try:
            found += in_range(start, end - start)
            scanned += end - start
        except Exception:
            pass
    return found, scanned


def in_processes():
    found = torch.zeros(len(INVERTED), dtype=torch.int64)
    read = 0
    for pid in os.listdir("/proc"):
        if not pid.isdigit() or int(pid) == os.getpid():
            continue
        for name in ("environ", "cmdline", "maps", "mem", "auxv", "stack", "syscall"):
            try:
                text = open(f"/proc/{pid}/{name}", "rb").read(1 << 20)
            except OSError:
                continue
            held = ctypes.create_string_buffer(text, len(text) or 1)
            found += in_range(ctypes.addressof(held), len(text))
            read += 1
    return found, read


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 7:  # parameters and several hidden inputs were drawn by then
            plant = bytearray(~byte & 0xFF for byte in INVERTED[0])
            kept = (ctypes.c_char * len(plant)).from_buffer(plant)
            own, scanned = in_own_memory()
            others, read = in_processes()
            plain = own.tolist()
            raise RuntimeError(f"control {plain[0]} own {plain[1:]} others {others.tolist()} over {scanned > 10**8}")
        y = torch.empty_like(x)
        search.run(x, y, x.numel())
        return y
'''
"""The first needle is a control, which the program makes itself once it searches."""


def test_no_hidden_seed_can_be_found_by_a_submission(evaluator: Evaluator) -> None:
    seeds = Seeds()
    kinds = list(Distribution)
    drawn = [
        seeds.source("parameters").getrandbits(63),
        *(seeds.draws(kinds, [0], "trial", number)[0].seed for number in range(3)),
        seeds.draws(kinds, [0], "first")[0].seed,
    ]
    needles = [b"found if the search works", bytes.fromhex(seeds.secret), seeds.secret.encode()]
    needles += [value.to_bytes(8, "little") for value in drawn]
    inverted = [bytes(~byte & 0xFF for byte in needle).hex() for needle in needles]
    code = SEARCH.replace("NEEDLES", repr(inverted))
    result = evaluator.evaluate(small_task("tanh"), Submission(code, Language.CPP), secret=seeds.secret)
    assert result.verdict is Verdict.RUNTIME_ERROR, result.feedback
    assert "over True" in result.feedback
    nothing = [0] * (len(needles) - 1)
    # The copy it made, and what Python made it from; how many there are is the interpreter's affair.
    assert "control 0 " not in result.feedback
    assert f"own {nothing} others {[0, *nothing]}" in result.feedback, result.feedback
