"""The mean of a linear layer is a product with the mean of its weights, for every input."""

import torch
import torch.nn as nn

from kernel_env import native

kernels = native.load(
    r"""
extern "C" void relu(const float* x, const float* wt, const float* b, float* y, int64_t rows, int64_t width,
                     int64_t features) {
    for (int64_t i = 0; i < rows; ++i) {
        float* row = y + i * features;
        for (int64_t j = 0; j < features; ++j) row[j] = b[j];
        for (int64_t p = 0; p < width; ++p)
            for (int64_t j = 0; j < features; ++j) row[j] += x[i * width + p] * wt[p * features + j];
        for (int64_t j = 0; j < features; ++j) row[j] = row[j] > 0.0f ? row[j] : 0.0f;
    }
}
extern "C" void average(const float* wt, const float* b, float* mean, int64_t width, int64_t features) {
    for (int64_t p = 0; p <= width; ++p) {
        const float* row = p < width ? wt + p * features : b;
        float total = 0.0f;
        for (int64_t j = 0; j < features; ++j) total += row[j];
        mean[p] = total / features;
    }
}
extern "C" void dot(const float* x, const float* mean, float* y, int64_t rows, int64_t width) {
    for (int64_t i = 0; i < rows; ++i) {
        float total = mean[width];
        for (int64_t p = 0; p < width; ++p) total += x[i * width + p] * mean[p];
        y[i] = total;
    }
}
""",
    {
        "relu": "const float* x, const float* wt, const float* b, float* y, int64_t rows, int64_t width, "
        "int64_t features",
        "average": "const float* wt, const float* b, float* mean, int64_t width, int64_t features",
        "dot": "const float* x, const float* mean, float* y, int64_t rows, int64_t width",
    },
)


class ModelNew(nn.Module):
    def __init__(self, width, features):
        super().__init__()
        self.linear = nn.Linear(width, features)
        self._prepared = None
        self._key = None

    def prepared(self):
        weight, bias = self.linear.weight, self.linear.bias
        key = (weight._version, bias._version)
        if self._key != key:
            turned = weight.detach().t().contiguous()
            mean = torch.empty(turned.shape[0] + 1)
            kernels.average(turned, bias, mean, *turned.shape)
            self._prepared, self._key = (turned, mean), key
        return self._prepared

    def forward(self, x):
        turned, mean = self.prepared()
        rows, width = x.shape
        y, of_rows = x.new_empty(rows, turned.shape[1]), x.new_empty(rows)
        kernels.relu(x, turned, self.linear.bias, y, rows, width, turned.shape[1])
        kernels.dot(x, mean, of_rows, rows, width)
        return y, of_rows
