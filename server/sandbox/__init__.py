"""Confinement of candidates: what they may touch, how they are watched, frozen and killed. Trusted code throughout."""
