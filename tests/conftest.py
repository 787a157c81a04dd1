"""Hypothesis tries the same examples in every run; with HYPOTHESIS_PROFILE=default it looks for new ones."""

import os

from hypothesis import settings

settings.register_profile("steady", derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))
