"""Measure the nightly refit: 1,000, 3,000 and 10,000 sources of 26 weeks.

``python benchmarks/refit.py [--sources 1000,3000,10000] [--threads 2]``

Sources are made up as for the back-tests: rates log-uniform from 1 to 500 entries a day,
half of them with bursts, a quarter publishing on the quarter of the hour. Everything the
refit does but reading and writing is in the figure: all fits, the scores of estimators
and policies, the forecasts. Statsmodels fits one model of one season to a few of the
same sources in the same run, and is scaled.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from datetime import UTC, datetime

import numpy as np

from tasks.compilation import keep_compiled_code

keep_compiled_code()

from models.intensity.fitting import fit_state  # noqa: E402
from models.intensity.history import History  # noqa: E402
from models.refitting import Terms, compared_share, refit  # noqa: E402
from models.synthetic import MONDAY_S, make_intensity, make_stamps  # noqa: E402

N_WEEKS = 26
END_S = MONDAY_S + N_WEEKS * 7 * 86_400.0
PART = 250
"""Sources made, and refitted, at a time: as the flow does it."""

N_STATSMODELS = 3


def make_history(place: int) -> History:
    """Return a made-up source's 26 weeks; the same for the same number."""
    rng = np.random.default_rng([7, place])
    per_day = float(np.exp(rng.uniform(0.0, np.log(500.0))))
    branching = float(rng.uniform(0.1, 0.5)) if place % 2 else 0.0
    stamps = make_stamps(make_intensity(per_day, N_WEEKS, rng), rng, branching, 1200.0)
    if place % 4 == 0:
        stamps = np.sort(np.round(stamps / 900.0) * 900.0 + rng.uniform(0.0, 5.0, len(stamps)))
    return History(f"made-{place}", stamps, MONDAY_S, END_S, "Europe/Berlin")


def measure(n_sources: int, threads: int) -> tuple[float, float, Counter[str]]:
    """Return wall and processor seconds of the refit of some sources, and what was chosen."""
    terms = Terms(datetime.fromtimestamp(END_S, UTC), compared_share=compared_share(n_sources))
    wall = cpu = 0.0
    chosen: Counter[str] = Counter()
    for start in range(0, n_sources, PART):
        histories = [make_history(at) for at in range(start, min(start + PART, n_sources))]
        begun, begun_cpu = time.perf_counter(), time.process_time()
        done = refit(histories, terms, threads=threads)
        wall += time.perf_counter() - begun
        cpu += time.process_time() - begun_cpu
        chosen.update(f"{item.model.policy} by {item.model.kind}" for item in done)
    return wall, cpu, chosen


def measure_statsmodels(n: int) -> tuple[float, float]:
    """Return processor seconds a source: statsmodels with one weekly season, and all of ours."""
    from statsmodels.tsa.holtwinters import ExponentialSmoothing

    theirs = ours = 0.0
    for place in range(n):
        history = make_history(place)
        begun = time.process_time()
        fit_state(history)
        ours += time.process_time() - begun
        _, counts = history.counts()
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ExponentialSmoothing(
                counts, trend="add", seasonal="add", seasonal_periods=168,
                initialization_method="heuristic",
            ).fit()  # fmt: skip
        theirs += time.process_time() - begun
    return theirs / n, ours / n


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", default="1000,3000,10000")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    refit([make_history(0), make_history(1)], Terms(datetime.fromtimestamp(END_S, UTC)))
    print("sources  wall s  cpu s  cpu ms/source  chosen")
    for n in map(int, options.sources.split(",")):
        wall, cpu, chosen = measure(n, options.threads)
        print(f"{n:7d}  {wall:6.1f}  {cpu:5.1f}  {1e3 * cpu / n:13.2f}  {dict(chosen)}", flush=True)
    theirs, ours = measure_statsmodels(N_STATSMODELS)
    print(
        f"statsmodels, one season of 168 h: {theirs:.2f} s of processor a source,"
        f" {theirs * 10_000 / 60:.0f} min for 10,000; ours, both seasons and all the rest:"
        f" {1e3 * ours:.1f} ms, {theirs / ours:.0f} times less"
    )


if __name__ == "__main__":
    main()
