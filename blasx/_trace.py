"""trace(): what each call ran, where, and what it copied; and when, of steps side by side."""

import json
import threading
from contextlib import contextmanager, nullcontext
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
    time, from call to return; `steps` are those of routines that have several under way at once.
    """

    name: str
    device: str = "cpu"
    variant: str = ""
    copies: int = 0
    bytes: int = 0
    transfers: int = 0
    syncs: int = 0
    ms: float = 0.0
    steps: list = field(default_factory=list)


class Step:
    """A step of a call: what it does, to which column on, and on which row of a timeline; between
    two times on the CPU, two events in a stream."""

    def __init__(self, name, column, row, in_stream):
        self.name, self.column, self.row, self.in_stream = name, column, row, in_stream

    def __enter__(self):
        self.began = self._now()

    def __exit__(self, *error):
        self.ended = self._now()

    def _now(self):
        if not self.in_stream:
            return perf_counter()
        from ._cuda import cupy, get_current_stream
        return get_current_stream().record(cupy.cuda.Event())

    def seconds(self, now, at):
        """When it began and ended on the host's clock, by which the event `now` was at `at`."""
        if not self.in_stream:
            return self.began, self.ended
        from ._cuda import cupy
        return [at - cupy.cuda.get_elapsed_time(event, now) / 1e3
                for event in (self.began, self.ended)]


@dataclass
class Trace:
    """The calls of one `with trace() as t:` block, in the order in which they ended."""

    calls: list = field(default_factory=list)

    def timeline(self, file):
        """Draw the steps of all calls against time: a row for each stream and thread.

        Parameters
        ----------
        file : path
            A picture where it ends in .png, for which matplotlib is asked; else JSON, which
            chrome://tracing and ui.perfetto.dev draw.

        Notes
        -----
        Waits for the GPU, whose steps are timed by events. The factorizations of one large matrix
        have steps, native, hybrid and of the host's matrices, and the host's products: panel,
        swap, solve, update, send, receive, gather and scatter, each of columns from one on.
        """
        found = self._timed()
        rows = list(dict.fromkeys(step.row for _, step, _, _ in found))
        if str(file).endswith(".png"):
            return _draw(file, rows, found)
        events = [{"ph": "M", "name": "thread_name", "pid": 0, "tid": i, "args": {"name": row}}
                  for i, row in enumerate(rows)]
        events += [{"ph": "X", "pid": 0, "tid": rows.index(step.row), "cat": call,
                    "name": f"{step.name} {step.column}", "args": {"column": step.column},
                    "ts": round(1e6 * began, 3), "dur": round(1e6 * (ended - began), 3)}
                   for call, step, began, ended in found]
        with open(file, "w") as f:
            json.dump({"traceEvents": events, "displayTimeUnit": "ms"}, f)

    def _timed(self):
        """(name of the call, step, seconds at which it began and ended) of all steps, in order."""
        steps = [(call.name, step) for call in self.calls for step in call.steps]
        now, at = None, 0.0
        if any(step.in_stream for _, step in steps):
            from ._cuda import cupy, get_current_stream
            now = get_current_stream().record(cupy.cuda.Event())
            now.synchronize()
            at = perf_counter()
        timed = [(call, step, *step.seconds(now, at)) for call, step in steps]
        start = min((began for _, _, began, _ in timed), default=0.0)
        return sorted(((call, step, began - start, ended - start)
                       for call, step, began, ended in timed), key=lambda x: x[2])

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


_NOTHING = nullcontext()
_ROWS = "GPU", "GPU, ahead", "GPU, second", "GPU, third"  # of streams beside the caller's


def step(name, column, row=None, in_stream=True):
    """A step of the call that runs in this thread, for `with`; recorded if that is being traced,
    and not where a graph captures the stream. `row`: by default that of the current stream."""
    record = getattr(_running, "call", None) if _open else None
    if record is None:
        return _NOTHING
    if in_stream:
        from . import _cuda
        if _cuda.get_current_stream().is_capturing():
            return _NOTHING
        row = row or _ROWS[_cuda.is_beside()]
    made = Step(name, column, row or "CPU", in_stream)
    record.steps.append(made)
    return made


def past(name, column, row, began, ended):
    """A step of the call that runs in this thread, on the CPU, which is over."""
    if record := call_here():
        made = Step(name, column, row, False)
        made.began, made.ended = began, ended
        record.steps.append(made)


def call_here():
    """The record of the call that runs in this thread, or None."""
    return getattr(_running, "call", None)


@contextmanager
def part_of(record):
    """What this thread does for the length of a with block is part of another thread's call."""
    before, _running.call = call_here(), record
    try:
        yield
    finally:
        _running.call = before


def _draw(file, rows, found):
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("timeline: a .png is drawn by matplotlib, which is not installed "
                          "(pip install 'blasx[plot]'); any other name gets JSON") from None
    names = list(dict.fromkeys(step.name for _, step, _, _ in found))
    figure = Figure(figsize=(14, 1.5 + 0.4 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for i, name in enumerate(names):
        for j, row in enumerate(rows):
            spans = [(1e3 * began, 1e3 * (ended - began)) for _, step, began, ended in found
                     if (step.name, step.row) == (name, row)]
            axes.broken_barh(spans, (j - 0.4, 0.8), facecolors=f"C{i}", edgecolor="white",
                             linewidth=0.2, label="_" * (j > 0) + name)
    axes.set_yticks(range(len(rows)), rows)
    axes.invert_yaxis()
    axes.set_xlabel("ms")
    if names:
        axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
    figure.savefig(file, format="png", dpi=120)
