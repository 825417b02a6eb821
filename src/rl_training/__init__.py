"""Cars that learn to drive from their camera, and the research loop that makes a champion of one."""

from __future__ import annotations

__version__ = "0.1.0"
