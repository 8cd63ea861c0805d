"""What is collected where: a lane has torch and none of the report's libraries."""

import importlib.util
from pathlib import Path

BESIDE_TORCH = importlib.util.find_spec("torch") is not None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """In a lane, leave out the files without a test for it: they may import the report world."""
    if not BESIDE_TORCH or not collection_path.match("test_*.py"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    return ("mark.torch" not in text and "mark.gpu" not in text) or None
