"""Measure the feed parser on test suites of other parsers, with their own expectations.

``python benchmarks/corpus.py [--show-wrong N] [--raise-floor]``

Ours, feedparser and fastfeedparser (left out where it is not installed) read the same files
in one run. Per suite: the share of files read, of those in which any of the three finds an
entry; the processor seconds for all its files; and where the suite says what a title, link,
identifier, date or author must be, the share of these that came out right. `suites.feeds`
says what each suite tells and where, `suites.values` how a value is compared, alike for all
three. Needs the shared collection.

``--raise-floor`` writes what we read now as the floor that a test holds
(``tests/tasks/test_feed_suites.py``).
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parent))

from rig import markdown_table
from suites.feeds import FOLDER, SUITES
from suites.floor import raise_floor
from suites.readers import find_readers
from suites.tally import Tally, measure
from suites.values import FIELDS


@click.command()
@click.option("--show-wrong", default=0, help="Print so many of our wrong values per suite.")
@click.option("--raise-floor", "is_raising", is_flag=True, help="Keep what is right now.")
def main(show_wrong: int, is_raising: bool) -> None:
    """Print the share of files read and of expected values right, per suite and parser."""
    if not FOLDER.exists():
        raise SystemExit(f"needs the shared collection at {FOLDER}")
    warnings.simplefilter("ignore")
    rows = []
    for suite in SUITES:
        tallies = measure(suite, find_readers())
        rows += [_row(suite, name, tally) for name, tally in tallies.items()]
        for line in [*tallies["ours"].unread, *tallies["ours"].wrong.values()][:show_wrong]:
            click.echo(f"{suite}: {line}", err=True)
    head = ["suite", "parser", "files", "read", "cpu s", "values", "right", *FIELDS]
    click.echo(markdown_table(head, rows))
    if is_raising:
        raise_floor()


def _row(suite: str, name: str, tally: Tally) -> list[str]:
    shares = [_share(tally.right[each], tally.asked[each]) for each in FIELDS]
    whole = _share(tally.right.total(), tally.asked.total())
    n_values = str(tally.asked.total() or "")
    read = _share(tally.n_read, tally.n_files)
    cpu_s = f"{tally.cpu_s:.2f}"
    return [suite, name, str(tally.n_files), read, cpu_s, n_values, whole, *shares]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


if __name__ == "__main__":
    main()
