"""The command line. Heavy libraries are imported inside the commands, so ``--help`` is quick."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.commands.saying import echo, echo_for_programs

if TYPE_CHECKING:
    from tasks.settings import Settings

HOME = click.option(
    "--home",
    default=".",
    envvar="NEWSBEAT_HOME",
    show_default="the current folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder with newsbeat.toml, data/sources and the warehouse.",
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Commands(click.Group):
    """The command group; turns our errors into one sentence and exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        from models.errors import NewsbeatError

        try:
            return super().invoke(ctx)
        except NewsbeatError as error:
            echo(f"newsbeat: {error}", err=True)
            ctx.exit(1)
        except OSError as error:
            if error.errno not in _ENVIRONMENT_TROUBLE:
                raise
            echo(f"newsbeat: {_ENVIRONMENT_TROUBLE[error.errno]}: {error}", err=True)
            ctx.exit(1)


_ENVIRONMENT_TROUBLE = {
    28: "the disk is full; free some space and run it again, nothing stored is lost",
    30: "the folder is on a read-only disk; choose another with --home",
    13: "no permission; choose a folder you may write to with --home",
}


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="newsbeat")
def main() -> None:
    """Watch many news sources at the least traffic, with SQL on everything found.

    \b
    See it work, offline, in three minutes:   newsbeat demo
    Watch a site of your own:                 newsbeat add https://example.com/
                                              newsbeat up
    Ask:                                      newsbeat sql "FROM lag_by_source_day"
    """


@main.command(short_help="Run the whole system offline, on a recorded web.")
@HOME
@click.option("--minutes", default=2.0, show_default=True, help="Minutes to collect for.")
@click.option("--speed", default=60.0, show_default=True, help="Recorded seconds per second.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of real recordings to replay instead of the made-up ones.",
)
@click.option("--keep", is_flag=True, help="Go on after the count, until Ctrl-C.")
@AS_JSON
def demo(
    home: Path, minutes: float, speed: float, data: Path | None, keep: bool, as_json: bool
) -> None:
    """Run the whole system offline, on a recorded web lived through fast.

    Twelve made-up sources publish at the pace of real ones. Everything is real but the
    web: Prefect's server, flow runs, DuckDB. At the end every entry the recorded web
    listed is counted against the warehouse; exit code 1 if one is missing or there twice.
    At noon two of the sites are rebuilt: found, held back, and set right at the end.

    \b
    Example:  newsbeat demo
              newsbeat demo --keep
              newsbeat demo --speed 120 --minutes 5
    """
    from flows.commands.demonstrating import run_demo

    folder = home.resolve() / "demo"
    outcome = run_demo(folder, minutes=minutes, speed=speed, data=data, keep=keep, quiet=as_json)
    if as_json:
        _print_json(outcome.as_json())
    sys.exit(0 if outcome.is_good else 1)


@main.command()
@HOME
def up(home: Path) -> None:
    """Start everything: server, deployments, worker. Runs until stopped with Ctrl-C.

    \b
    Example:  newsbeat up
              newsbeat up --home ~/news
    """
    from flows.commands.running import run_up

    run_up(_settings(home))


@main.command()
@HOME
def down(home: Path) -> None:
    """Stop the newsbeat that runs in this folder.

    \b
    Example:  newsbeat down
    """
    from flows.supervisor import stop_everything

    ran = stop_everything(_settings(home), click.echo)
    click.echo("stopped" if ran else "nothing was running here")


@main.command()
@HOME
@click.option("--parent", type=int, hidden=True, help="Stop when this process is gone.")
def worker(home: Path, parent: int | None) -> None:
    """Run polls in this process, for a Prefect server of yours.

    \b
    Example:  NEWSBEAT_PREFECT_API_URL=http://prefect.lan:4200/api newsbeat worker
    """
    settings = _settings(home)
    _enter_prefect(settings)
    _keep_compiled_code()
    from flows.commands.working import work

    work(settings, parent)


@main.command(short_help="Make or renew a Prefect deployment for every source.")
@HOME
def deploy(home: Path) -> None:
    """Make or renew one Prefect deployment per source of the catalogue.

    \b
    Example:  newsbeat deploy
    """
    settings = _settings(home)
    _enter_prefect(settings)
    from flows.commands.working import deploy_catalogue

    deploy_catalogue(settings)


@main.command()
@HOME
@click.argument("source")
@AS_JSON
def poll(home: Path, source: str, as_json: bool) -> None:
    """Poll SOURCE once, now, in the foreground, without any server.

    \b
    Example:  newsbeat poll bbc-world
    """
    settings = _settings(home)
    _keep_compiled_code()
    from flows.commands.polling import poll_once

    report = poll_once(settings, source)
    if as_json:
        _print_json(report.as_json())
    else:
        echo(report.as_text())
    sys.exit(0 if report.is_good else 1)


@main.command(short_help="Show what broke, is late, was lost; then every source.")
@HOME
@AS_JSON
def status(home: Path, as_json: bool) -> None:
    """Show what broke, what is late, what was lost; then every source.

    \b
    Example:  newsbeat status
              newsbeat status --json | jq '.sources[] | select(.state != "active")'
    """
    from flows.commands.reporting import read_report

    report = read_report(_settings(home))
    if as_json:
        _print_json(report.as_json())
    else:
        _print_rich(report)


@main.command(short_help="Serve the status page alone; `newsbeat up` does it too.")
@HOME
def page(home: Path) -> None:
    """Serve the status page alone, until Ctrl-C; `newsbeat up` does it by itself.

    For where `newsbeat worker` runs without `up`, or nothing does.

    \b
    Example:  newsbeat page
              NEWSBEAT_PAGE_PORT=8080 newsbeat page --home ~/news
    """
    from flows.commands.showing import show_page

    show_page(_settings(home))


@main.command(short_help="Run read-only SQL, at any time.")
@HOME
@click.argument("query", required=False)
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
@AS_JSON
def sql(home: Path, query: str | None, as_csv: bool, as_json: bool) -> None:
    """Run read-only SQL, while the worker runs or when nothing does.

    Without QUERY, statements are read from standard input; in a terminal each line is one.

    \b
    Example:  newsbeat sql "SELECT source, count(*) FROM articles GROUP BY ALL"
              newsbeat sql < report.sql
    """
    from flows.commands.asking import ask, converse

    settings = _settings(home)
    form = "json" if as_json else "csv" if as_csv else "table"
    if query is None and sys.stdin.isatty():
        converse(settings, form)
    else:
        answer = ask(settings, query if query is not None else sys.stdin.read(), form)
        echo_for_programs(answer) if form == "csv" else echo(answer)


@main.command(short_help="Compare polling policies on publication times of the past.")
@click.argument("trace", default="warehouse")
@HOME
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="Policy to replay; give it again for more. A usual choice of six where left out.",
)
@click.option(
    "--interval",
    default=600.0,
    show_default=True,
    type=click.FloatRange(min=1.0),
    help="Seconds of the timer whose polls are the budget of all.",
)
@click.option(
    "--train-share",
    default=0.5,
    show_default=True,
    type=click.FloatRange(0.05, 0.95),
    help="Part of the time to learn from; the rest is tested.",
)
@click.option(
    "--window",
    default=30,
    show_default=True,
    type=click.IntRange(min=1),
    help="Entries that a list holds.",
)
@click.option("--timezone", help="Zone of sources whose rows name none; UTC where left out.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw lag against polls there: .png, .svg or .pdf.",
)
@AS_JSON
def backtest(
    trace: str,
    home: Path,
    policies: tuple[str, ...],
    interval: float,
    train_share: float,
    window: int,
    timezone: str | None,
    plot: Path | None,
    as_json: bool,
) -> None:
    """Replay TRACE under several policies, each tuned to the same number of polls.

    TRACE is a Parquet or CSV file with columns source and published_at (and perhaps
    timezone), or `warehouse`, which is what this folder has collected.

    \b
    Example:  newsbeat backtest
              newsbeat backtest trace.csv --interval 1800 --plot lag.png
              newsbeat backtest trace.parquet --policy price --policy plan --json
    """
    from tasks.compilation import keep_compiled_code

    keep_compiled_code()

    from flows.commands.backtesting import backtest as run
    from flows.commands.backtesting import choose_policies
    from flows.commands.screen import SafeConsole, Screen

    report = run(
        _settings(home),
        trace,
        policies=choose_policies(policies),
        interval_s=interval,
        train_share=train_share,
        window=window,
        timezone=timezone,
        plot=plot,
        screen=Screen(console=SafeConsole(stderr=True) if as_json else None),
    )
    if as_json:
        _print_json(report.as_json())
    else:
        _print_rich(report)


@main.command()
@click.argument("target", metavar="FILE_OR_URL")
@HOME
@click.option(
    "--kind",
    type=click.Choice(["feed", "sitemap", "list", "article", "robots", "telegram"]),
    default="feed",
    show_default=True,
    help="What stands there; feeds of mastodon, bluesky, reddit and youtube are feeds.",
)
@click.option("--base-url", help="Address that relative links are resolved against.")
@click.option("--content-type", help="Content-Type header to read FILE with.")
@click.option("--agent", help="With --kind robots: whose rules.")
@click.option("--url", help="With --kind robots: the address asked about.")
@click.option("--allow-private", is_flag=True, help="Allow addresses inside your own network.")
@AS_JSON
def inspect(
    target: str,
    home: Path,
    kind: str,
    base_url: str | None,
    content_type: str | None,
    agent: str | None,
    url: str | None,
    allow_private: bool,
    as_json: bool,
) -> None:
    """Show what our parsers make of a file or an address.

    \b
    Example:  newsbeat inspect saved-feed.xml
              newsbeat inspect https://example.com/news --kind list
              newsbeat inspect https://t.me/telegram --kind telegram
              newsbeat inspect robots.txt --kind robots --agent newsbeat --url https://example.com/a
    """
    from flows.commands.looking import look_at, render_findings

    findings = look_at(
        _settings(home),
        target,
        kind=kind,
        base_url=base_url,
        content_type=content_type,
        agent=agent,
        url=url,
        allow_private=allow_private,
    )
    if as_json:
        _print_json(findings)
    else:
        echo(render_findings(kind, findings))


@main.command(short_help="Find the feed, sitemap or list behind URL and add it.")
@HOME
@click.argument("url")
@click.option("--name", help="Name of the source; made from the address by default.")
@click.option(
    "--timezone", help="Zone of its dates that name none, such as Europe/Moscow; else UTC."
)
@click.option("--allow-private", is_flag=True, help="Allow addresses inside your own network.")
@click.option("--yes", is_flag=True, help="Take the best find without asking.")
@AS_JSON
def add(
    home: Path,
    url: str,
    name: str | None,
    timezone: str | None,
    allow_private: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Find the feed, sitemap or list behind URL and add it to data/sources.

    URL may be a home page, a feed, a channel (https://t.me/NAME), a profile or a forum.
    Each find is tried, and shown with what speaks for it. The first source of your own
    makes that folder; the catalogue that comes with newsbeat then no longer applies.

    \b
    Example:  newsbeat add https://example.com/
              newsbeat add https://example.com/ --name example --timezone Europe/Moscow
              newsbeat add https://t.me/telegram --yes
    """
    from flows.commands.adding import add_source

    found = add_source(
        _settings(home),
        url,
        name=name,
        timezone=timezone,
        allow_private=allow_private,
        take_best=yes or as_json,
        quiet=as_json,
    )
    if as_json:
        _print_json(found)


@main.command("import", short_help="Add the sources of an OPML file, a table or a list.")
@HOME
@click.argument("file", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["opml", "csv", "list"]),
    help="What FILE is; found out where left out.",
)
@click.option("--check", is_flag=True, help="Try every address first, and leave out what fails.")
@click.option("--tag", "tags", multiple=True, help="Tag for every source; again for more.")
@click.option("--timezone", help="Zone of dates that name none, where the line names none either.")
@click.option("--allow-private", is_flag=True, help="Allow addresses inside your own network.")
@click.option("--dry-run", is_flag=True, help="Say what would be imported, and write nothing.")
@AS_JSON
def import_(
    home: Path,
    file: Path,
    form: Any,
    check: bool,
    tags: tuple[str, ...],
    timezone: str | None,
    allow_private: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Add the sources in FILE to data/sources: OPML, a table (CSV) or a list of addresses.

    Every line stands for itself: what is wrong with one is said, and the others are
    imported. What is there already stays as it is. Folders become tags. Nothing is
    fetched unless you say --check, which tries each address politely and looks for the
    feed behind a home page. Exit code 1 if a line could not be imported.

    \b
    Example:  newsbeat import subscriptions.opml
              newsbeat import sources.csv --tag region --timezone Europe/Moscow
              newsbeat import addresses.txt --check
    """
    from flows.commands.importing import import_sources, say_progress

    report = import_sources(
        _settings(home),
        file,
        form=form,
        check=check,
        tags=tags,
        timezone=timezone,
        allow_private=allow_private,
        dry_run=dry_run,
        tell=say_progress,
    )
    if as_json:
        _print_json(report.as_json())
    else:
        echo(report.as_text())
    sys.exit(0 if report.is_good else 1)


@main.command(short_help="Show which keyword rules hit a text, where and why.")
@click.argument("file", metavar="FILE")
@HOME
@click.option(
    "--rules",
    type=click.Path(exists=True, path_type=Path),
    help="File or folder of rules, in place of data/keywords.",
)
@click.option("--source", help="Take the text for this source's: the scope of rules holds.")
@click.option("--language", help="Two-letter code: rules for other languages do not hold.")
@AS_JSON
def match(
    file: str,
    home: Path,
    rules: Path | None,
    source: str | None,
    language: str | None,
    as_json: bool,
) -> None:
    """Show which keyword rules hit the text in FILE (- for standard input), where and why.

    The first line counts as the title.

    \b
    Example:  newsbeat match article.txt
              echo "Dam bursts above the town" | newsbeat match - --rules my-rules.toml
    """
    from flows.commands.matching import match_file, warn_of

    report = match_file(_settings(home), file, rules, source, language)
    warn_of(report.problems)
    if as_json:
        _print_json(report.as_json())
    else:
        _print_rich(report)


@main.group()
def rules() -> None:
    """Work on keyword rules.

    \b
    Example:  newsbeat rules try my-rules.toml
    """


@rules.command(name="try", short_help="Count what rules would have matched.")
@click.argument("file", type=click.Path(exists=True, path_type=Path))
@HOME
@click.option("--since", default="30d", show_default=True, help="How far back: hours, days, weeks.")
@AS_JSON
def try_rules(file: Path, home: Path, since: str, as_json: bool) -> None:
    """Show what the rules in FILE would have matched: how much, examples, and what each costs.

    \b
    Example:  newsbeat rules try my-rules.toml --since 30d
    """
    from flows.commands.matching import warn_of
    from flows.commands.trying import try_rules as run

    report = run(_settings(home), file, since, _say_progress)
    warn_of(report.problems)
    if as_json:
        _print_json(report.as_json())
    else:
        _print_rich(report)


def _say_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{done} of {total} articles", nl=False, err=True)


@main.command(short_help="Show what people were told, what waits, what failed.")
@HOME
@click.option("--hours", default=24.0, show_default=True, help="How far back.")
@AS_JSON
def notices(home: Path, hours: float, as_json: bool) -> None:
    """Show what people were told, what waits, and what could not be sent.

    \b
    Example:  newsbeat notices
              newsbeat notices --hours 168 --json
    """
    from flows.commands.noticing import list_notices

    found = list_notices(_settings(home), hours)
    if as_json:
        _print_json(found.as_json())
    else:
        _print_rich(found)


@main.command(short_help="Acknowledge a notice: its alert is not repeated any more.")
@HOME
@click.argument("notice")
def ack(home: Path, notice: str) -> None:
    """Acknowledge NOTICE, named by its first digits: its alert is not repeated any more.

    \b
    Example:  newsbeat ack 3fa9c1
    """
    from flows.commands.noticing import acknowledge

    echo(acknowledge(_settings(home), notice))


@main.command("drift-bench", short_help="Break pages in known ways: which detectors notice?")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--sites", default=8, show_default=True, type=click.IntRange(min=1), help="Sites.")
@click.option(
    "--correct",
    default=300,
    show_default=True,
    type=click.IntRange(min=40),
    help="Correct pages watched on each site.",
)
@click.option(
    "--reference",
    default=200,
    show_default=True,
    type=click.IntRange(min=9),
    help="Pages of each site to learn from.",
)
@click.option(
    "--share",
    default=1.0,
    show_default=True,
    type=click.FloatRange(0.01, 1.0),
    help="Share of the pages that are broken, from the break on.",
)
@click.option("--kind", "kinds", multiple=True, help="Breakage to try; again for more.")
@click.option("--seed", default=0, show_default=True, type=int, help="Of all chance.")
@AS_JSON
def drift_bench(
    folder: Path,
    sites: int,
    correct: int,
    reference: int,
    share: float,
    kinds: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> None:
    """Break the pages in FOLDER in known ways, and see which detectors notice.

    FOLDER holds pages as they were stored: SITE/*.html, or archives with an index.csv.
    Nothing is fetched. Some minutes on two processors.

    \b
    Example:  newsbeat drift-bench pages/ --sites 4 --correct 100
              newsbeat drift-bench pages/ --share 0.3 --kind teaser --kind half --json
    """
    from flows.commands.driftbench import DriftBenchView, bench_drift, check_kinds
    from flows.commands.screen import SafeConsole, Screen
    from flows.drift_bench import BenchPlan

    plan = BenchPlan(
        folder,
        n_sites=sites,
        n_reference=reference,
        n_correct=correct,
        share=share,
        kinds=check_kinds(kinds),
        seed=seed,
    )
    report = bench_drift(plan, Screen(console=SafeConsole(stderr=True) if as_json else None))
    if as_json:
        _print_json(report.as_json())
    else:
        _print_rich(DriftBenchView(report))


@main.command()
@HOME
@AS_JSON
def refit(home: Path, as_json: bool) -> None:
    """Fit every source's forecast anew to its history, now.

    Done every night by itself while newsbeat is up (see [refit] in newsbeat.toml). Where
    a worker runs, it does it now too, beside its polls.

    \b
    Example:  newsbeat refit
              newsbeat sql "SELECT source, kind, policy, score, note FROM intensity_models"
    """
    _keep_compiled_code()
    settings = _settings(home)
    from flows.commands.refitting import is_worker_running, refit_here, refit_there

    if is_worker_running(settings):
        _enter_prefect(settings)
        found = refit_there(settings, quiet=as_json)
    else:
        found = refit_here(settings, quiet=as_json).as_json()
    if as_json:
        _print_json(found)


@main.command(short_help="Write sources, tables or a saved search for other programs.")
@HOME
@click.option(
    "--format",
    "form",
    type=click.Choice(["opml", "csv", "parquet", "jsonl", "atom", "json-feed"]),
    required=True,
    help="opml: the sources; csv, parquet, jsonl: a table; atom, json-feed: a saved search.",
)
@click.option(
    "--what",
    default="articles",
    show_default=True,
    help="Table of the warehouse; with csv also `catalogue`, the sources for `newsbeat import`.",
)
@click.option("--search", default="all", show_default=True, help="Name in data/searches.toml.")
@click.option("--since", help="Of a table, rows of the last 12h, 30d or 2w; all where left out.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write; standard output where left out.",
)
def export(
    home: Path, form: str, what: str, search: str, since: str | None, out: Path | None
) -> None:
    """Write sources as OPML, a table as CSV, Parquet or JSON Lines, a saved search as a feed.

    While a worker runs it is read through it, live; otherwise from the file.

    \b
    Example:  newsbeat export --format opml --out sources.opml
              newsbeat export --format parquet --since 30d --out articles.parquet
              newsbeat export --format csv --what catalogue > sources.csv
              newsbeat export --format csv --what polls > polls.csv
              newsbeat export --format atom --search urgent --out urgent.atom
    """
    from flows.commands.exporting import export as run

    if done := run(_settings(home), form, what, search, since, out):
        echo(done)


@main.command(short_help="Compare the last pages of SOURCE with its reference, now.")
@HOME
@click.argument("source")
@AS_JSON
def check(home: Path, source: str, as_json: bool) -> None:
    """Compare the last article pages of SOURCE with what its pages are like, now.

    Done by itself whenever enough new pages came (see [drift] in newsbeat.toml). Exit code
    1 if they differ, or could not be judged.

    \b
    Example:  newsbeat check example-news
              newsbeat sql "FROM drift_history ORDER BY checked_at DESC"
    """
    _mend(home, "check", source, as_json=as_json)


@main.command(short_help="Say that SOURCE is right as it is now.")
@HOME
@click.argument("source")
@AS_JSON
def accept(home: Path, source: str, as_json: bool) -> None:
    """Say that SOURCE is right as it is now: its present pages become the reference.

    Articles that were held back since it changed are released.

    \b
    Example:  newsbeat accept example-news
    """
    _mend(home, "accept", source, as_json=as_json)


@main.command(short_help="Extract articles of SOURCE again from their stored pages.")
@HOME
@click.argument("source")
@click.option(
    "--since",
    type=click.DateTime(["%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S"]),
    help="From pages fetched since then (UTC); since the source changed where left out.",
)
@click.option("--adopt", is_flag=True, help="Look for the best other way to the text, and take it.")
@AS_JSON
def reextract(home: Path, source: str, since: Any, adopt: bool, as_json: bool) -> None:
    """Extract articles of SOURCE again from their stored pages, and compare.

    For after a change of its [extract] rules in the catalogue, or with --adopt. Where the
    texts look as before the change, they are stored and the articles released.

    \b
    Example:  newsbeat reextract example-news
              newsbeat reextract example-news --adopt
              newsbeat reextract example-news --since 2026-05-04
    """
    from datetime import UTC

    moment = since.replace(tzinfo=UTC) if since else None
    _mend(home, "reextract", source, moment, adopt, as_json=as_json)


@main.command(short_help="Write the report of a day.")
@HOME
@click.option("--day", help="Such as 2026-03-01, today or yesterday; yesterday by default.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder to write to; data/reports/DAY in the home folder by default.",
)
@AS_JSON
def report(home: Path, day: str | None, out: Path | None, as_json: bool) -> None:
    """Write the report of a day: what mattered, who was first, what was not covered.

    As Markdown and as a page that needs no other file, with the status page beside it,
    and every table as CSV and Parquet. Done every night by itself while newsbeat is up
    (see [report] in newsbeat.toml).

    \b
    Example:  newsbeat report
              newsbeat report --day 2026-03-01 --out ~/reports/sunday
              newsbeat report --day today --json | jq '.sections.words'
    """
    from flows.commands.daily_report import report_now

    found = report_now(_settings(home), day, out, quiet=as_json)
    if as_json:
        _print_json(found)


@main.command()
@HOME
@AS_JSON
def doctor(home: Path, as_json: bool) -> None:
    """Say what is wrong with this installation, and the way out.

    \b
    Example:  newsbeat doctor
    """
    from flows.commands.examining import examine

    findings = examine(home)
    if as_json:
        _print_json([finding.as_json() for finding in findings])
    else:
        for finding in findings:
            echo(finding.as_text())
    sys.exit(1 if any(finding.is_bad for finding in findings) else 0)


def _mend(
    home: Path,
    action: str,
    source: str,
    since: Any = None,
    adopt: bool = False,
    *,
    as_json: bool,
) -> None:
    _keep_compiled_code()
    settings = _settings(home)
    from flows.commands.mending import mend
    from flows.commands.refitting import is_worker_running

    if is_worker_running(settings):
        _enter_prefect(settings)
    report = mend(settings, action, source, since, adopt, quiet=as_json)
    if as_json:
        _print_json(report.as_json())
    else:
        echo(report.words)
    sys.exit(0 if report.is_good else 1)


def _settings(home: Path) -> Settings:
    from tasks.settings import read_settings

    return read_settings(home)


def _keep_compiled_code() -> None:
    """Name the place of compiled loops; it must be known before they are imported."""
    from tasks.compilation import keep_compiled_code

    keep_compiled_code()


def _enter_prefect(settings: Settings) -> None:
    """Set what Prefect reads when it is imported.

    Raises
    ------
    ServerError
        If no server is known.
    """
    from models.errors import ServerError
    from tasks.prefect_server import client_environment, configured_api_url, is_healthy

    api_url = configured_api_url(settings)
    if not api_url:
        api_url = f"http://{settings.prefect.host}:{settings.prefect.port}/api"
    if not is_healthy(api_url):
        raise ServerError(
            api_url,
            "Prefect's server does not answer",
            "Start everything with `newsbeat up`, or name a server of yours with"
            " prefect.api_url in newsbeat.toml",
        )
    os.environ.update(client_environment(settings, api_url))


def _print_json(value: object) -> None:
    from models.harmless import spell_json

    click.echo(spell_json(value))


def _print_rich(renderable: Any) -> None:
    from flows.commands.screen import make_console

    make_console().print(renderable)


if __name__ == "__main__":
    main()
