"""python -m bench speed FILE ...

bench/SPEED.md and bench/speed.png from what `compare` wrote: milliseconds, and how many times that
the best peer takes in the same run. Of a row that several FILES have the last one's is taken, of
its variants (in place, a kernel of ours) the fastest.
"""

import json
import sys
from importlib import import_module
from pathlib import Path
from statistics import geometric_mean

from .compare import FAMILIES
from .report import extents

FOLDER = Path(__file__).parent
MANY = 12  # shapes that differ otherwise than in their order: of more only the mean is told
RATIOS = (1, 2, 3, 5, 10, 20, 40, 100)  # the figure's ticks
PANELS = {  # of the figure: families, and whose lines it shows
    "many matrices": (("batched", "batched_qr"),
                      "sgetrf dgetrf sgesv dgesv dgetri spotrf dpotrf sgeqrf dgeqrf"),
    "products of many": (("batched_blas",), "sgemm dgemm ssyrk dsyrk strsm dtrsm"),
    "one matrix": (("lapack",), "sgetrf dgetrf spotrf dpotrf sgeqrf dgeqrf dsgesv_rbt"),
    "one product": (("gemm",), "sgemm cgemm dgemm ssyrk dsyrk strsm"),
}


def main(arguments):
    """Write both."""
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    files = [Path(x) for x in arguments]
    if missing := [str(path) for path in files if not path.is_file()]:
        print(f"bench speed: no file {missing[0]}", file=sys.stderr)
        return 2
    rows = newest(files)
    (FOLDER / "SPEED.md").write_text(page(rows, files))
    if any(curves(rows, *what) for what in PANELS.values()):
        figure(rows).savefig(FOLDER / "speed.png", dpi=110)
    return 0


def newest(files):
    """{(family, name, shape): its row, with "file" and "report"}, the last file's."""
    found = {}
    for path in files:
        report, here = json.loads(path.read_text()), {}
        for row in report["rows"]:
            key = row["family"], name(row), row["shape"]
            better = row["ratio"] and row["ratio"] > here.get(key, {"ratio": 0})["ratio"]
            if better or not row["peers"]:
                here[key] = row | {"file": path.name, "report": report}
        found |= here
    return found


def name(row):
    """The routine's, with its type where its name does not say it, a CPU's batch with its size."""
    if row["routine"].startswith(("dsgesv", "zcgesv")):
        return row["variant"] or row["routine"]
    if row["family"] in ("nn", "nn_gpu"):
        return row["routine"] + ", bfloat16" * (row["dtype"] == "b")
    members = f", {extents(row)[0]}" if row["family"] == "cpu" and "_b" in row["routine"] else ""
    return row["dtype"] + row["routine"] + members


def page(rows, files):
    """SPEED.md: a chapter a family; a table of what differs in its order alone, a list of the
    rest."""
    text = ["# Speed", "", "Made by `python -m bench speed " + " ".join(
        f"bench/results/{path.name}" for path in files) + "`. Milliseconds, and in brackets how "
        "many times that the best peer takes in the same run; operands random and cold, answers of "
        "all sides checked, medians."]
    for family, module in FAMILIES.items():
        routines = {}
        for (where, routine, _), row in rows.items():
            if where == family:
                routines.setdefault(routine, []).append(row)
        if routines:
            text += ["", f"## `python -m bench compare {family}`", "",
                     import_module(f"bench.{module}").__doc__.strip(), "", *chapter(routines)]
    return "\n".join(text) + "\n"


def chapter(routines):
    """The lines of a family, {routine: its rows}."""
    regular = {r: {sides(x)[0]: x for x in found} for r, found in routines.items()
               if 1 < len(found) == len({sides(x)[0] for x in found})
               and all(is_regular(x) for x in found)}
    orders = sorted({n for found in regular.values() for n in found})
    if regular:
        yield "| | " + " | ".join(str(n) for n in orders) + " |"
        yield "|---" * (len(orders) + 1) + "|"
        for routine, found in regular.items():
            cells = (cell(found[n]) if n in found else "" for n in orders)
            yield f"| {routine} | " + " | ".join(cells) + " |"
        yield ""
    for routine, found in routines.items():
        if routine not in regular:
            ratios = [x["ratio"] for x in found]
            each = ", ".join(f"{x['shape']} {cell(x)}" for x in found)
            yield f"- {routine}: " + (
                each if len(found) <= MANY else f"{len(found)} shapes, "
                f"{geometric_mean(ratios):.2f} times in the geometric mean, "
                f"{min(ratios):.2f} to {max(ratios):.2f}")
    files = {x["file"]: x["report"] for found in routines.values() for x in found}
    yield ""
    yield "From " + ", ".join(
        f"{file} ({r['gpu'] or r['versions']['cpu']}, {r['date']}, {r['commit']})"
        for file, r in files.items()) + "."


def sides(row):
    """The extents of a problem, of a member where there are many."""
    stacks = row["family"].startswith("batched") or "_batched" in row["routine"]
    return extents(row)[1:3] if stacks else extents(row)


def is_regular(row):
    """Is its shape told by its order?"""
    return " " not in row["shape"] and len(set(sides(row))) == 1


def cell(row):
    ratio = row["ratio"]
    if row["family"] == "ragged":  # peers do other things
        return f"{row['ms']:.3g} (" + ", ".join(
            f"{peer} {x['ms']:.3g}" for peer, x in row["peers"].items() if x["ms"]) + ")"
    if ratio is None:  # no peer
        return f"{row['ms']:.3g}"
    return f"{row['ms']:.3g} ({ratio:.{1 if ratio >= 10 else 2}f})"


def figure(rows):
    """Times the best peer against the order, a panel for each of PANELS that has rows."""
    from matplotlib.figure import Figure
    panels = {title: lines for title, what in PANELS.items() if (lines := curves(rows, *what))}
    made = Figure(layout="constrained", figsize=(3.5 * len(panels), 4.2))
    for (title, lines), axes in zip(panels.items(), made.subplots(1, len(panels), squeeze=False)[0],
                                    strict=True):
        for i, (routine, points) in enumerate(lines.items()):
            axes.loglog(*zip(*points, strict=True), label=routine, marker="o", ms=3, color=f"C{i}",
                        ls="--" if routine[0] == "s" else "-")
        orders = sorted({n for points in lines.values() for n, _ in points})
        axes.set_xticks(orders, [str(n) for n in orders], rotation=45, minor=False)
        axes.set_xticks([], minor=True)
        axes.set_yticks(RATIOS, [str(r) for r in RATIOS])
        axes.set_yticks([], minor=True)
        axes.axhline(1, color="black", lw=0.8)
        axes.set_title(title)
        axes.set_xlabel("order")
        axes.grid(alpha=0.3)
        axes.legend(fontsize=7, frameon=False)
    made.axes[0].set_ylabel("times the best peer")
    where = next(iter(rows.values()))["report"]
    made.suptitle(f"The best of torch, CuPy, cuBLAS, cuSOLVER and jax over blasx, {where['gpu']}")
    return made


def curves(rows, families, shown):
    """{routine: [(order, ratio)]} of a panel."""
    found = {}
    for (family, routine, _), row in rows.items():
        if family in families and routine in shown.split() and is_regular(row):
            found.setdefault(routine, []).append((sides(row)[0], row["ratio"]))
    return {routine: sorted(found[routine]) for routine in shown.split() if routine in found}
