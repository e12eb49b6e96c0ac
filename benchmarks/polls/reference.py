"""Our simulator against the reference vectors: counts and mean lags of seven policies."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
from polls.figures import Figure

from models.bounds import clairvoyant_lags
from models.simulator import Replay, Rule, replay_source, replay_warmed_up
from models.traces import FloatArray

NOTES = Path(__file__).parents[2].parent / "shared" / "notes"

MONDAY_S = 345_600.0
"""5 January 1970: near zero, so that times keep all their digits."""

DAYS = 28

RULES = (
    (Rule("fixed"), 0),
    (Rule("adaptive", knob=2.0, floor_s=300.0, ceiling_s=3600.0), 0),
    (Rule("adaptive", knob=2.0, up=-0.1, down=-0.1, floor_s=300.0, ceiling_s=3600.0), 0),
    (Rule("count", "ema", knob=1.2, floor_s=300.0, ceiling_s=3600.0), 1),
    (Rule("count", "holt-winters", knob=1.2, floor_s=300.0, ceiling_s=3600.0), 14),
    (Rule("nutch", knob=1.0, up=0.4, down=0.2, sync=0.3, floor_s=60.0), 0),
)
"""In the order of the file; with the days that each is warmed up."""

PRICE = 600.0


def read_trace() -> dict[str, FloatArray]:
    """Return the publication times of each source of the reference trace."""
    times: dict[str, list[float]] = {}
    with (NOTES / "reference_trace.csv").open(encoding="utf-8") as file:
        for source, seconds in list(csv.reader(file))[1:]:
            times.setdefault(source, []).append(MONDAY_S + float(seconds))
    return {source: np.array(stamps) for source, stamps in times.items()}


def read_expected() -> list[dict[str, dict[str, float]]]:
    """Return polls, empty polls, mean lag, loaded and missed, by policy and source."""
    text = (NOTES / "reference_expected.json").read_text(encoding="utf-8")
    return list(json.loads(text).values())


def replay(stamps: FloatArray, place: int) -> Replay:
    """Return what the policy at a place of the file does to a source."""
    rule, days = RULES[place]
    span = {"start_s": MONDAY_S, "end_s": MONDAY_S + DAYS * 86_400.0}
    if days:
        return replay_warmed_up(stamps, rule, warm_up_s=days * 86_400.0, **span)
    return replay_source(stamps, rule, **span)


def differences(stamps: FloatArray, place: int, expected: dict[str, float]) -> tuple[int, float]:
    """Return how far the counts are off, and the mean lag as a share."""
    if place == len(RULES):
        polls, lags = clairvoyant_lags(stamps, PRICE)
        got = (polls, 0, len(lags), 0)
    else:
        done = replay(stamps, place)
        lags = done.lags_s
        # The reference reckons Fixed without a last poll: it loads what we leave waiting.
        waiting = done.waiting if RULES[place][0].policy == "fixed" else 0
        got = (len(done.polls_s), done.empty, len(lags) + waiting, done.lost)
    wanted = (expected["polls"], expected["empty"], expected["loaded"], expected["missed"])
    off = sum(int(abs(a - b)) for a, b in zip(got, wanted, strict=True))
    return off, abs(float(lags.mean()) / expected["mean_delay"] - 1.0)


def measure(workers: int) -> list[Figure]:
    """Return the worst difference over all policies and sources."""
    trace = read_trace()
    counts, lags = 0, 0.0
    for place, by_source in enumerate(read_expected()):
        for source, expected in by_source.items():
            off, share = differences(trace[source], place, expected)
            counts, lags = counts + off, max(lags, share)
    note = "7 policies x 5 sources; Fixed/ria: what comes after the last poll is loaded there"
    return [
        Figure("reference vectors: counts that differ", counts, 0, note),
        Figure("reference vectors: largest difference of a mean lag, %", 100 * lags, 0.5),
    ]
