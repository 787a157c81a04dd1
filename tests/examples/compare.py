"""Runs an example kernel against its task's reference; also a program, for kernels that need a process of their own."""

import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How far the outputs are apart."""

    same_form: bool
    """Equal shape and type."""

    error: float
    """Largest absolute difference, in units of the root mean square of the reference."""


def compare(kernel: Path, reference_source: str, device: str = "cpu") -> Comparison:
    """Construct both, give both the same perturbed parameters and the same inputs, call the kernel twice."""
    names: dict[str, Any] = {}
    exec(reference_source, names)
    torch.manual_seed(0)
    with torch.device(device), torch.no_grad():
        reference = names["Model"](*names["get_init_inputs"]())
        model = load(kernel).ModelNew(*names["get_init_inputs"]()).to(device)
        for parameter in reference.parameters():
            parameter.mul_(1 + torch.rand_like(parameter)).add_(0.1 * torch.randn_like(parameter))
        model.load_state_dict(reference.state_dict())
        first, second = names["get_inputs"](), names["get_inputs"]()
        model(*first)
        copies = [tensor.clone() for tensor in second]
        output, expected = model(*second), reference(*second)
        assert all(torch.equal(*pair) for pair in zip(copies, second, strict=True)), "the kernel changed its inputs"
    same_form = output.shape == expected.shape and output.dtype == expected.dtype
    error = ((output - expected).abs().max() / expected.square().mean().sqrt()).item() if same_form else float("inf")
    return Comparison(same_form, error)


def load(path: Path) -> Any:
    """Import a file that is in no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Compare every kernel of the JSON on stdin, from its path to the source of its reference."""
    for kernel, source in json.load(sys.stdin).items():
        compared = compare(ROOT / kernel, source)
        sys.stdout.write(json.dumps([kernel, compared.same_form, compared.error]) + "\n")


if __name__ == "__main__":
    main()
