"""Which inputs of a task may be given other values than `get_inputs()` draws.

An input is *free* when any real values make a valid call. Where values carry a meaning (a probability, a class label, a
mask, a triangular matrix), other values would make an honest kernel wrong, so they stay as the task draws them, with
hidden seeds. Integer and boolean inputs are never free.
"""

STRUCTURED_TASKS = frozenset(
    {
        "level1/13_Matmul_for_symmetric_matrices",  # A and B symmetric: reading one half is honest
        "level1/14_Matmul_for_upper_triangular_matrices",
        "level1/15_Matmul_for_lower_triangular_matrices",
        "level1/90_cumprod",  # underflows to zero or overflows for nearly every other distribution
        "level1/93_masked_cumsum",
        "level1/94_MSELoss",  # targets and predictions share a random scale
        "level1/95_CrossEntropyLoss",
        "level1/96_HuberLoss",
        "level1/98_KLDivLoss",  # probabilities
        "level1/99_TripletMarginLoss",
        "level1/100_HingeLoss",  # labels are -1 or 1
    }
)
"""KernelBench tasks with at least one floating-point input whose values are not free."""


def has_free_inputs(task_id: str) -> bool:
    """Whether floating-point inputs of the task may be re-drawn."""
    return task_id not in STRUCTURED_TASKS
