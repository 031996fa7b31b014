"""``python -m atonnx`` is the command ``atonnx``."""

from __future__ import annotations

from atonnx.cli import main

if __name__ == "__main__":
    main()
