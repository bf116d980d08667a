"""Giving up what lets root read and write every file, so that modes count for it too."""

import ctypes

_BSET_DROP = 24
_VERSION = 0x20080522
_FILE_CAPABILITIES = (1, 2)  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def give_up_file_capabilities() -> None:
    """Of this process, and of every program that it runs.

    Raises:
        OSError: the system does not allow it.
    """
    libc = ctypes.CDLL(None)
    header, sets = _Header(_VERSION, 0), (_Sets * 2)()
    calls = [libc.prctl(_BSET_DROP, capability, 0, 0, 0) for capability in _FILE_CAPABILITIES]
    calls.append(libc.capget(ctypes.byref(header), sets))
    kept = ~sum(1 << capability for capability in _FILE_CAPABILITIES) & 0xFFFFFFFF
    sets[0].effective &= kept
    sets[0].permitted &= kept
    calls.append(libc.capset(ctypes.byref(header), sets))
    if any(calls):
        raise OSError("the capabilities cannot be given up")
