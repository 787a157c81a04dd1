"""The task as text for a language model. Trusted side; a pure function of its arguments.

What the prompt promises is what the judge holds: whoever changes a rule there changes its sentence here.
"""

from pathlib import Path

from kernel_env.terms import Language, Precision

from ..policy import Policy, rule
from .splits import operator_of
from .task import Task

_EXAMPLES_FOLDER = Path(__file__).parent / "examples"
_EXAMPLES = ("scale_shift", "add")
"""Operators with a worked example; the first that is not the task's own is shown."""

_LANGUAGE_NAMES = {Language.TRITON: "Triton", Language.CUDA: "CUDA C++", Language.CPP: "C++"}

_CONTRACTS = {
    Precision.IEEE: (
        "`ieee`: fp32 arithmetic as written. Results computed in TF32, fp16 or bf16 are too far off and are judged "
        "wrong. Reordering sums and fusing multiply-adds is fine."
    ),
    Precision.TF32: (
        "`tf32`: inputs and outputs are fp32. Matrix products may round their factors to TF32 (tensor cores) but must "
        "accumulate in fp32; everything else is fp32. fp16 or bf16 factors are too far off and are judged wrong."
    ),
    Precision.LOWP: (
        "`lowp`: products may be computed in the 16-bit type of the inputs, and must accumulate in fp32. The output "
        "has the reference's type."
    ),
}

_INTRODUCTION = """\
You write fast kernels. Below is a PyTorch module, `Model`. Write a module `ModelNew` that computes the same with \
{language} kernels of your own, as fast as the device allows.

Device: {device}
Language: {language}
Turns: {turns}

# Reference

```python
{source}```
"""

_REPLY = """\
# Reply

Reply with one fenced block that holds the whole Python module: imports, kernels, and `class ModelNew(nn.Module)`. It \
is written to a file, imported, constructed as `ModelNew(*get_init_inputs())` and called as `model(*get_inputs())`. \
Define neither `Model` nor `get_inputs` again; they have no effect. Each turn stands alone: always send the complete \
module.
"""

_RULES = """\
# Rules

What you can rely on:
- {shapes}
- Each call gets inputs with other content in other memory. Values are not those `get_inputs()` would draw: where the \
task does not need them to be non-negative, probabilities, labels, indices, masks or of a special structure, they may \
be negative, zero, repeated, up to 1000 in size, with rare spikes.
- Parameters and BatchNorm statistics are loaded by `load_state_dict` after construction and before the first call, \
with values that differ from the initial ones; afterwards they do not change. Dropout is off.
- Inputs come from memory, not from a cache; parameters that fit the cache may be warm.

What your module must do:
- Give its parameters and buffers the names and shapes of the reference's (`self.linear = nn.Linear(...)` may hold \
them). Do not derive tensors from them in `__init__`: do that in `forward`, and again whenever their `_version` \
changes.
- Do the arithmetic in kernels of your own. In `forward`, PyTorch may allocate, fill, reshape, view and copy. {policy}
- Return a new tensor, allocated by PyTorch in that call, with the reference's structure, shape and type. It must \
share no memory with an input or another output. All work on it must be finished in stream order when `forward` \
returns.
- Leave the inputs as they are.
- Compute each call on its own: no results kept from earlier calls, no work put off to later ones. A kernel may be \
compiled or tuned in the first call.
{capture}- Leave torch, triton, time, builtins and `sys.modules` unpatched, and do not inherit from `Model`. There is \
no network, and no file outside the working folder can be written.

Precision contract {contract}
The tolerance follows from this contract, the length of the sums and the scale of the outputs in each row or channel. \
Every output of every call, timed calls included, is compared.

Reward per turn: 0 unless every output is correct; else 0.3 + 2.7 * min(t_min / t, 1), where t is the measured time \
per call and t_min the least time this device needs for the task's memory traffic and arithmetic under the contract.
"""

_ONE_SIZE = "Shapes, data types and contiguity of the inputs are always those of `get_inputs()`."
_SEVERAL_SIZES = """\
The module is judged at {count} sizes, each in a process of its own: the one above, and {others} with other values for \
{varying}. Data types and contiguity are always those of `get_inputs()`. Outputs must be right at every size; times \
and `min(t_min / t, 1)` are geometric means over the sizes."""

_CAPTURE = """\
- Keep `forward` capturable in a CUDA graph: no synchronisation, no `.item()`, no transfer to the CPU. It will be \
captured and replayed; a forward that cannot be is timed call by call, and pays for its overhead.
"""

_INTERPRETED = """\
On this device Triton kernels run in Triton's interpreter: they are judged for correctness only and are not timed, so \
the reward of a correct one is 0.3. Avoid features that exist on GPUs only.
"""

_NATIVE = """\
# {language} in this environment

`kernel_env.native.load(source, functions)` compiles a source without PyTorch's headers in about a second. Functions \
are `extern "C"`, take pointers and numbers, return nothing, and are called with contiguous tensors and Python \
numbers. {stream}
`torch.utils.cpp_extension.load_inline` works as well, but its headers take 20 s or more to compile in each submission.
"""

_STREAM = "Launch on a `cudaStream_t` parameter, which the helper fills with PyTorch's current stream."

_EXAMPLE = """\
# Example of the format

For this reference:

```python
{reference}```

this is a complete, correct reply (a simple one, not a fast one):

```python
{solution}```
"""


def build_prompt(
    task: Task,
    language: Language,
    max_turns: int,
    *,
    device_kind: str,
    device_name: str,
    policy: Policy = Policy.STRICT,
) -> str:
    """Everything an agent needs to know to solve `task`.

    Args:
        language: Language asked for; the worked example is in it.
        max_turns: Submissions the episode has.
        device_kind: `cuda` or `cpu`; chooses the size of the task.
        device_name: Marketing name, for instance `NVIDIA H200`.
        policy: What PyTorch may compute.
    """
    on_cuda = device_kind == "cuda"
    name = _LANGUAGE_NAMES[language]
    parts = [
        _INTRODUCTION.format(
            language=name, device=device_name, turns=_turns(max_turns), source=task.source_for(device_kind)
        ),
        _RULES.format(
            shapes=_shapes(task, device_kind),
            contract=_CONTRACTS[task.precision],
            capture=_CAPTURE if on_cuda else "",
            policy=rule(policy, task.level),
        ),
    ]
    if language is Language.TRITON:
        parts += [] if on_cuda else [_INTERPRETED]
    else:
        parts.append(_NATIVE.format(language=name, stream=_STREAM if language is Language.CUDA else ""))
    example = next(operator for operator in _EXAMPLES if operator_of(operator) != operator_of(task.task_id))
    parts.append(_EXAMPLE.format(reference=_example(example, "reference"), solution=_example(example, language.value)))
    parts.append(_REPLY)
    return "\n".join(parts)


def _shapes(task: Task, device_kind: str) -> str:
    count = len(task.at_sizes(device_kind))
    if count == 1:
        return _ONE_SIZE
    varying = ", ".join(f"`{name}`" for name in task.varying)
    return _SEVERAL_SIZES.format(count=count, others="one" if count == 2 else count - 1, varying=varying)


def _turns(max_turns: int) -> str:
    if max_turns == 1:
        return "1 (a single submission)"
    return f"{max_turns} submissions at most; after each you are told what was wrong, or how fast it was"


def _example(operator: str, kind: str) -> str:
    return (_EXAMPLES_FOLDER / f"{operator}_{kind}.py").read_text(encoding="utf-8")
