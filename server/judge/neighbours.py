"""What the judge can ask for about the other candidates of its device. Trusted; the evaluator does it."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Every candidate of the device but the one that is judged."""

    quiet: Callable[[bool], None]
    """Stop them, or let them continue."""

    evict: Callable[[], None]
    """End them, since one keeps the device busy though stopped. Each gets a new process, and the device alone."""
