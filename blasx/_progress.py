"""A bar with the time left."""

import sys
from time import perf_counter


class Progress:
    """A bar on a terminal; lines elsewhere. After `patience` seconds, where that is not 0, and then
    on a terminal only."""

    def __init__(self, to=None, now=perf_counter, patience=0):
        self.to, self.now, self.began, self.patience = to or sys.stderr, now, now(), patience
        self.bar, self.shown = self.to.isatty(), not patience

    def __call__(self, done, total, what):
        passed = self.now() - self.began
        self.shown = self.shown or self.bar and done < total and passed > self.patience
        if not self.shown:
            return
        left = f"{clock(passed / done * (total - done))} left" if done else ""
        part = int(30 * done / max(total, 1))
        text = f"[{'#' * part}{'.' * (30 - part)}] {done}/{total} {what:24} {left}"
        self.to.write(f"\r\x1b[K{text}" + "\n" * (done == total) if self.bar else text + "\n")
        self.to.flush()

    def say(self, line):
        self.to.write("\r\x1b[K" * self.bar + line + "\n")


def clock(seconds):
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes}:{seconds:02}"
