"""trace(): what each call ran, where, and what it copied."""

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

_open = []  # traces in progress; calls look at its truth value only, so it costs them nothing
_running = threading.local()


@dataclass
class Call:
    """One call of a public routine inside trace().

    `device` is "cpu" or "gpu:<id>"; `variant` names what did the work (scipy, lapack, cublas,
    cusolver, or a kernel of ours); `copies` and `bytes` count operands that had to be copied,
    because their layout, type or device was not the routine's; `transfers` are the bytes that
    crossed between host and device; `syncs` are the host's waits for the device; `ms` is host
    time, from call to return.
    """

    name: str
    device: str = "cpu"
    variant: str = ""
    copies: int = 0
    bytes: int = 0
    transfers: int = 0
    syncs: int = 0
    ms: float = 0.0


@dataclass
class Trace:
    """The calls of one `with trace() as t:` block, in the order in which they ended."""

    calls: list = field(default_factory=list)

    def __str__(self):
        head = (f"{'routine':16} {'device':7} {'variant':16} copies      bytes  transfer syncs"
                "       ms")
        return "\n".join([head] + [
            f"{c.name:16} {c.device:7} {c.variant:16} {c.copies:6d} {c.bytes:10d} "
            f"{c.transfers:9d} {c.syncs:5d} {c.ms:8.3f}" for c in self.calls])


@contextmanager
def trace():
    """Record every call of a blasx routine, of all threads, until the block ends.

    Yields
    ------
    Trace
        Its `calls` fill as the calls end; ``print(t)`` draws them as a table.

    Notes
    -----
    Tracing does not synchronise: `ms` of a GPU call is what the host spent on it.
    """
    t = Trace()
    _open.append(t)
    try:
        yield t
    finally:
        _open.remove(t)


def recorded(name, call):
    """Run `call()` as the routine `name` and append its record to every open trace."""
    outer = getattr(_running, "call", None)
    record = _running.call = Call(name)
    start = perf_counter()
    try:
        return call()
    finally:
        record.ms = (perf_counter() - start) * 1e3
        record.variant = record.variant or ("scipy" if record.device == "cpu" else "")
        _running.call = outer
        for t in list(_open):
            t.calls.append(record)


def note(variant=None, device=None, copied=0, transferred=0, synced=0):
    """Add to the record of the call that runs in this thread, if it is being traced."""
    record = getattr(_running, "call", None) if _open else None
    if record is None:
        return
    if variant and variant not in record.variant.split("+"):
        record.variant = f"{record.variant}+{variant}" if record.variant else variant
    record.device = device or record.device
    record.copies += copied > 0
    record.bytes += copied
    record.transfers += transferred
    record.syncs += synced
