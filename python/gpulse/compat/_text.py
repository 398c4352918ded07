"""Texts that other users choose."""

from __future__ import annotations


def shown(text: bytes) -> str:
    """As it may be printed on a terminal: without control characters and invalid bytes."""
    return "".join(char if char.isprintable() else "?" for char in text.decode(errors="replace"))
