"""Calls every function that takes text, so that what it compiles at its first call is seen."""

import os

from tests.growth import arguments, functions
from tests.growth.world import World

PACKAGE = "memlog"


def run() -> None:
    """Call each on a few ordinary texts."""
    world, before = World(), os.getcwd()
    os.chdir(world.folder)
    try:
        for function in functions.text_functions(PACKAGE):
            if arguments.exclusion_reason(function) is None:
                for call in arguments.calls(function, world):
                    for text in arguments.ORDINARY:
                        call(text)
    finally:
        os.chdir(before)
        world.close()
