"""Hidden values of one evaluation, all from one secret, so that it can be judged again. Trusted.

Values that follow from the secret: parameters, inputs, the order of calls and of repetitions. What only has to be
unknown while a submission runs, such as the bits that outputs are filled with, comes from the operating system.
"""

import hashlib
import random
import secrets
from collections.abc import Iterable, Sequence

from .distributions import Distribution, Draw

SECRET_BYTES = 32


class Seeds:
    """Random numbers by label: those of one label tell nothing of another's.

    Args:
        secret: Hexadecimal, of an evaluation that is to be repeated. Default: a new one from the operating system.
    Raises:
        ValueError: Not 32 bytes in hexadecimal.
    """

    def __init__(self, secret: str | None = None) -> None:
        self.secret = secrets.token_hex(SECRET_BYTES) if secret is None else secret
        self._key = bytes.fromhex(self.secret)
        if len(self._key) != SECRET_BYTES:
            raise ValueError(f"a secret has {SECRET_BYTES} bytes, got {len(self._key)}")

    def source(self, *label: str | int) -> random.Random:
        """Random numbers for one purpose."""
        text = "/".join(str(part) for part in label)
        return random.Random(int.from_bytes(hashlib.blake2b(text.encode(), key=self._key).digest()))

    def draws(self, allowed: Sequence[Distribution], calls: Iterable[int], *label: str | int) -> dict[int, Draw]:
        """Input set of each call, by its number."""
        source, kinds = self.source("inputs", *label), list(allowed)
        return {call: Draw(source.getrandbits(63), source.choice(kinds)) for call in calls}
