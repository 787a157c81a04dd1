"""Comments, names and strings hold every word a list of bad words would hold."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
#include <cmath>
extern "C" void run(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}
""",
    {"run": "const float* x, float* y, int64_t n"},
)


# This forward pass does not try to cache the stream, patch the timer or import threading; it does not call
# torch.tanh(x), torch.nn.functional or F.tanh. No except, no pass, no eval(), no exec(), no os.environ.
NOTE = "import threading; torch.cuda.Event = None; except: return torch.tanh(x)"  # torch.compile(model)
perf_counter_note = "time.perf_counter is left alone"


class ModelNew(nn.Module):
    """One kernel. The result is never cached; `torch.tanh` is what the reference calls.

    try: nothing. except: nothing. pass.
    """

    def forward(self, x):
        stream_cache_time = torch.empty_like(x)  # only a name
        kernels.run(x, stream_cache_time, x.numel())
        return stream_cache_time
