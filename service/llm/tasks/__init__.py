"""The language model tasks: one module each, which names its class `TASK`."""

from importlib import import_module
from pathlib import Path
from typing import Any

from memlog.service.llm.task import Task


def load_tasks() -> list[type[Task[Any, Any]]]:
    """Return the tasks in the order of their modules."""
    names = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    return [import_module(f"{__name__}.{name}").TASK for name in names if name != "__init__"]
