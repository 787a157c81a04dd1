"""What a watch over a device says. Trusted; `watchman.py` stands it on a GPU."""

from typing import Protocol


class Watch(Protocol):
    """From its making to `end`."""

    def end(self) -> float:
        """Seconds somebody else had the device meanwhile; infinite where the watch did not last."""


class NoWatch:
    """For a device where stopping a process stops its work."""

    def end(self) -> float:
        """None."""
        return 0.0
