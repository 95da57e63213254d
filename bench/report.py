"""python -m bench report [FILES] [--out FOLDER]

From bench/results/*.json (or FILES): markdown tables on standard output, and a PNG for each file
and type, time and GFLOP/s against n. --mean: of these routines and types, in all files together,
the geometric mean of the ratios, each row's better variant counting, and the lowest.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import geometric_mean

from testing import flops

RESULTS = Path(__file__).parent / "results"
OPERATIONS = {  # (multiplications, additions) of one problem of order n
    **{r: lambda n, f=getattr(flops, r): f(n, n) for r in ("getrf", "geqrf", "gemv")},
    **{r: lambda n, f=getattr(flops, r): f(n, 1) for r in ("getrs", "gesv", "potrs", "posv")},
    "potrf": flops.potrf, "gemm": lambda n: flops.gemm(n, n, n),
    "trsm": lambda n: flops.trsm("L", n, n), "axpy": flops.axpy, "dot": flops.axpy,
    "scal": flops.scal,
}
PRODUCTS = ("gemm", "gemm_uniform", "gemm_permuted", "gemm_spread", "gemm_update")  # one at a time


def main(arguments):
    """Write the tables and the plots of every file that compare wrote."""
    parser = argparse.ArgumentParser(prog="python -m bench report", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    parser.add_argument("--mean", metavar="ROUTINE,...")
    parser.add_argument("-p", dest="letters", default="sd", metavar="sdcz")
    options = parser.parse_args(arguments)
    for path in options.files:
        if not path.is_file():
            parser.error(f"no file {path}")
    reports = dict(compared(options.files or sorted(RESULTS.glob("*.json"))))
    if options.mean:
        print(mean(reports.values(), options.mean.split(","), options.letters))
        return 0
    for path, report in reports.items():
        print(table(report), end="\n\n")
        for image in plots(report, options.out / path.stem):
            print(f"![{path.stem}]({image.name})", end="\n\n")
    return 0


def compared(files):
    """(path, report) of the files that `compare` wrote; the others are named."""
    for path in files:
        try:
            report = json.loads(path.read_text())
            known = "family" in report["rows"][0]
        except (ValueError, LookupError, TypeError):
            known = False
        if known:
            yield path, report
        else:
            print(f"{path.name}: no rows of compare, passed over", file=sys.stderr)


def mean(reports, routines, letters):
    """The geometric mean of the ratios of all rows of these routines, and the rows below 1.1."""
    best = {}
    for report in reports:
        for row in report["rows"]:
            if row["routine"] in routines and row["dtype"] in letters and row["ratio"]:
                key = row["dtype"] + row["routine"], row["shape"]
                best[key] = max(best.get(key, 0), row["ratio"])
    if not best:
        return f"no row of {', '.join(routines)} in {letters}"
    whole = geometric_mean(best.values())
    low = sorted((ratio, *key) for key, ratio in best.items() if ratio < 1.1)
    return "\n".join([f"{whole:.2f}: geometric mean of {len(best)} rows; below 1.1:",
                      *(f"  {ratio:.2f} {name} {shape}" for ratio, name, shape in low)])


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
    made = []
    for letter in dict.fromkeys(row["dtype"] for row in report["rows"]):
        panels = {}
        for row in report["rows"]:
            if row["dtype"] == letter:
                panels.setdefault(row["routine"], []).append(row)
        panels = {r: rows for r, rows in panels.items() if len({x["shape"] for x in rows}) > 1}
        if panels:
            made.append(Path(f"{stem}_{letter}.png"))
            where = report["gpu"] or report["versions"].get("cpu")
            draw(panels, f"{report['rows'][0]['family']}, {where}").savefig(made[-1], dpi=110)
    return made


def draw(panels, title):
    """The figure of {routine: its rows}: time of one problem above, GFLOP/s below."""
    from matplotlib.figure import Figure
    figure = Figure(layout="constrained", figsize=(2 + 2.6 * len(panels), 6))
    axes = figure.subplots(2, len(panels), squeeze=False, sharex="col")
    sides = list(dict.fromkeys(name for rows in panels.values() for name in curves(rows)))
    for (routine, rows), (time, speed) in zip(panels.items(), axes.T, strict=True):
        for name, points in curves(rows).items():
            style = {"color": f"C{sides.index(name)}", "marker": "o", "ms": 4,
                     "lw": 2.5 if name.startswith("blasx") else 1.2}
            n, us, rates = zip(*points, strict=True)
            time.loglog(n, us, label=name, **style)
            if None not in rates:
                speed.loglog(n, rates, **style)
        time.set_title(rows[0]["dtype"] + routine)
        speed.set_xlabel("n")
        orders = sorted({extents(row)[-1] for row in rows})
        speed.set_xticks(orders, [str(n) for n in orders], minor=False)
        speed.set_xticks([], minor=True)
    axes[0, 0].set_ylabel("us a problem")
    axes[1, 0].set_ylabel("GFLOP/s")
    names = {label: line for ax in axes[0]
             for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(names.values(), names, loc="outside lower center", ncols=5, frameon=False)
    figure.suptitle(title)
    return figure


def curves(rows):
    """{side: [(n, microseconds of one problem, GFLOP/s)]} of the rows of one routine, by n."""
    found = {}
    for row in rows:
        sides = {f"blasx, {row['variant']}": row["ms"],
                 **{name: peer["ms"] for name, peer in row["peers"].items()}}
        batch = extents(row)[0] if is_stack(row) else 1
        for name, ms in sides.items():
            if ms is not None:
                point = extents(row)[-1], 1e3 * ms / batch, gflops(row, ms, batch)
                found.setdefault(name, set()).add(point)
    return {name: sorted(points) for name, points in found.items()}


def extents(row):
    return [int(x) for x in re.findall(r"\d+", row["shape"])]


def is_stack(row):
    return len(extents(row)) == 3 and row["routine"] not in PRODUCTS


def gflops(row, ms, batch):
    """The speed of a row; None for a routine that does not count its operations."""
    if row["routine"] in PRODUCTS:
        return flops.total(flops.gemm(*extents(row)), row["dtype"] in "cz") / ms / 1e6
    operations = OPERATIONS.get(row["routine"].partition("_")[0])
    if operations is None:
        return None
    return batch * flops.total(operations(extents(row)[-1]), row["dtype"] in "cz") / ms / 1e6
