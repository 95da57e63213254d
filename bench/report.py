"""python -m bench report [FILES] [--out FOLDER]

From bench/results/*.json (or FILES): markdown tables on standard output, and a PNG for each file
and type, time and GFLOP/s against n.
"""

import argparse
import json
import sys
from pathlib import Path

from testing import flops

RESULTS = Path(__file__).parent / "results"
OPERATIONS = {  # (multiplications, additions) of one problem of order n
    **{r: lambda n, f=getattr(flops, r): f(n, n) for r in ("getrf", "geqrf", "gemv")},
    **{r: lambda n, f=getattr(flops, r): f(n, 1) for r in ("getrs", "gesv", "potrs", "posv")},
    "potrf": flops.potrf, "gemm": lambda n: flops.gemm(n, n, n), "axpy": flops.axpy,
    "dot": flops.axpy, "scal": flops.scal,
}


def main(arguments):
    """Write the tables and the plots of every file that compare wrote."""
    parser = argparse.ArgumentParser(prog="python -m bench report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    options = parser.parse_args(arguments)
    for path in options.files or sorted(RESULTS.glob("*.json")):
        report = json.loads(path.read_text())
        rows = report.get("rows", []) if isinstance(report, dict) else []
        if not rows or "family" not in rows[0]:
            print(f"{path.name}: no rows of compare, passed over", file=sys.stderr)
            continue
        print(table(report), end="\n\n")
        for image in plots(report, options.out / path.stem):
            print(f"![{path.stem}]({image.name})", end="\n\n")
    return 0


def table(report):
    """The markdown table of one file: a line a row, a column a peer."""
    rows = report["rows"]
    peers = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    where = report["gpu"] or report["versions"].get("cpu", "CPU")
    head = [f"**{rows[0]['family']}**: {where}, {report['date']}, commit {report['commit']}. "
            "Milliseconds; ratio = best peer / blasx.", "",
            "| routine | shape | variant | blasx | " + " | ".join(peers) + " | ratio |",
            "|---" * 3 + "|---:" * (len(peers) + 2) + "|"]
    return "\n".join(head + [line(row, peers) for row in rows])


def line(row, peers):
    def ms(entry):
        return f"{entry['ms']:.4g}" if entry and entry["ms"] is not None else "-"

    cells = [row["dtype"] + row["routine"], row["shape"], row["variant"], ms(row)]
    cells += [ms(row["peers"].get(name)) for name in peers]
    cells.append(f"{row['ratio']:.2f}" if row["ratio"] else "-")
    return "| " + " | ".join(cells) + " |"


def plots(report, stem):
    """One PNG for each type in the file; their paths."""
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    made = []
    for letter in dict.fromkeys(row["dtype"] for row in report["rows"]):
        rows = [row for row in report["rows"] if row["dtype"] == letter]
        routines = [r for r in dict.fromkeys(row["routine"] for row in rows)
                    if len({row["shape"] for row in rows if row["routine"] == r}) > 1]
        if not routines:
            continue
        figure, axes = pyplot.subplots(2, len(routines), squeeze=False, layout="constrained",
                                       figsize=(2 + 2.6 * len(routines), 6), sharex="col")
        colours = {}
        for routine, (time, speed) in zip(routines, axes.T, strict=True):
            these = [row for row in rows if row["routine"] == routine]
            for name, points in curves(these).items():
                style = {"lw": 2.5, "zorder": 3} if name.startswith("blasx") else {"lw": 1.2}
                colour = colours.setdefault(name, f"C{len(colours)}")
                n, ms = zip(*sorted(points.items()), strict=True)
                time.loglog(n, ms, "o-", color=colour, label=name, ms=4, **style)
                rates = [gflops(routine, letter, shape_of(these, k), t)
                         for k, t in zip(n, ms, strict=True)]
                if None not in rates:
                    speed.loglog(n, rates, "o-", color=colour, ms=4, **style)
            time.set_title(letter + routine)
            speed.set_xlabel("n")
            speed.set_xticks(n, [str(k) for k in n])
            speed.minorticks_off()
        axes[0, 0].set_ylabel("ms")
        axes[1, 0].set_ylabel("GFLOP/s")
        names = {label: handle for ax in axes[0]
                 for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)}
        figure.legend(names.values(), names, loc="outside lower center", ncols=5, frameon=False)
        figure.suptitle(f"{rows[0]['family']}, {report['gpu'] or report['versions'].get('cpu')}")
        made.append(Path(f"{stem}_{letter}.png"))
        figure.savefig(made[-1], dpi=110)
        pyplot.close(figure)
    return made


def curves(rows):
    """{side: {n: ms}} of the rows of one routine."""
    found = {}
    for row in rows:
        n = int(row["shape"].split("x")[-1])
        sides = {f"blasx, {row['variant']}": row["ms"],
                 **{name: peer["ms"] for name, peer in row["peers"].items()}}
        for name, ms in sides.items():
            if ms is not None:
                found.setdefault(name, {})[n] = ms
    return found


def shape_of(rows, n):
    return next(row["shape"] for row in rows if row["shape"].split("x")[-1] == str(n))


def gflops(routine, letter, shape, ms):
    """The speed of a row; None for a routine that does not count its operations."""
    base, _, many = routine.partition("_")
    extents = [int(x) for x in shape.split("x")]
    if base not in OPERATIONS:
        return None
    batch = extents[0] if len(extents) == 3 and base != "gemm" else 1
    return batch * flops.total(OPERATIONS[base](extents[-1]), letter in "cz") / ms / 1e6
