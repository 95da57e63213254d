"""All Cases, found by their files: testing_<name>.py holds CASE.

CASES is the list, in alphabetical order. For every one (see case.Case and case.Problem):

    case.name, case.group       'getrf', 'lu'
    case.typed                  {'d': 'dgetrf', ...}: the letters it has and the names to import
    case.outputs                ['lu', 'piv', 'info']
    case.variants()             [{'uplo': 'L'}, ...], all its flags
    p = case.problem(letter, (m, n, k), flags, rng, options)     options: options.Options()
    p.args, p.kwargs            what the routine takes (NumPy arrays); they may be replaced
    outputs = case.call(p)      blasx's answer as a tuple of NumPy arrays
    found = case.errors(p, outputs)      {what: error (float), verdict (bool) or None (not judged)}
    case.failures(p, found)     [] if it passes: errors in units of p.eps, see case.limit_of

    case, letter = find('dgetrf')
"""

from importlib import import_module
from pathlib import Path


def _load(path):
    return import_module("." + path.stem, __package__).CASE


CASES = [_load(path) for path in sorted(Path(__file__).parent.glob("testing_*.py"))]

TYPED = {typed: (case, letter) for case in CASES for letter, typed in case.typed.items()}


def find(name):
    """The Case and letter of a typed name; the letter is None for a name without one.

    A name without its letter is the Case's own (getrf) or a typed one's rest (ungqr).
    """
    if name in TYPED:
        return TYPED[name]
    for case in CASES:
        if name in (case.name, *(typed[1:] for typed in case.typed.values())):
            return case, None
    close = [typed for typed in TYPED if name[1:] in typed][:8]
    raise KeyError(f"unknown routine {name!r}" + (f"; do you mean {', '.join(close)}?"
                                                  if close and len(name) > 3 else ""))
