"""The records that travel between modules. All frozen; all times are aware UTC.

Words are the project's own (see ``docs/words.md``): a *source* is a publisher,
a *poll* one scheduled look at it, a *fetch* one HTTP exchange, an *entry* an
item as listed, an *article* the page behind it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Kind = Literal[
    "auto", "feed", "sitemap", "list", "telegram", "mastodon", "bluesky", "reddit", "youtube"
]
Outcome = Literal["new", "empty", "not_modified", "failed", "refused"]
State = Literal["active", "paused", "failing", "drifted", "gone"]
Precision = Literal["instant", "minute", "day"]
TlsProfile = Literal["strict", "legacy"]
Method = Literal["auto", "precise", "generous", "json-ld", "readable", "baseline", "listing"]
PageClass = Literal["article", "list", "wall", "empty"]
Standing = Literal["learning", "watching", "layout", "text"]
Identity = Literal["auto", "guid", "link", "title-date"]
IncidentKind = Literal["outage", "host", "held", "failing", "gone", "moved", "validators"]
Packed = bytes
"""A state that only newsbeat reads."""

FAILURES: frozenset[Outcome] = frozenset({"failed", "refused"})
"""Outcomes of polls that could not read their source."""


@dataclass(frozen=True, slots=True)
class PollRules:
    """``[poll]`` of a source: how often to look.

    Attributes
    ----------
    policy
        Name of a polling policy; ``auto`` is ``price``, or ``plan`` where that proved better.
    estimator
        Whose forecast it polls by: ``weekly``, ``holt-winters``, ``ema``; ``auto`` is the
        weekly profile, or what proved better.
    interval_s
        Wait between polls of the ``fixed`` policy, and of the others before the first poll.
    min_interval_s, max_interval_s
        Floor and ceiling of any wait, in seconds.
    target_lag_s
        Wanted mean publication lag, in seconds, where the user states one.
    """

    policy: str = "auto"
    estimator: str = "auto"
    interval_s: float = 600.0
    min_interval_s: float = 60.0
    max_interval_s: float = 86_400.0
    target_lag_s: float | None = None


@dataclass(frozen=True, slots=True)
class ListRules:
    """``[list]`` of a source: which links of a list page are its entries.

    Attributes
    ----------
    links
        CSS selector of the links; the generic finder where empty.
    url_pattern
        Regular expression that an entry's address must match (``re.search``).
    date
        CSS selector, inside the block that holds the link, of its date.
    """

    links: str | None = None
    url_pattern: str | None = None
    date: str | None = None


@dataclass(frozen=True, slots=True)
class ExtractRules:
    """``[extract]`` of a source: how parts of its article pages are found.

    Attributes
    ----------
    title, text, date
        CSS selectors; the generic way where None.
    method
        Generic way to the text: ``auto``; ``precise`` or ``generous`` where that takes too
        much or too little; ``json-ld``, the text a page states for search engines;
        ``readable`` and ``baseline``, two other ways to tell text from the rest; ``listing``,
        the text the listing brings: no page is fetched.
    """

    title: str | None = None
    text: str | None = None
    date: str | None = None
    method: Method = "auto"


@dataclass(frozen=True, slots=True)
class HttpRules:
    """``[http]`` of a source.

    Attributes
    ----------
    allow_private
        Allow private, loopback and carrier-grade NAT addresses (intranets, replays).
    connect_to
        ``"host:port"`` that every connection of this source is made to, whatever
        the address says (as curl's ``--connect-to``).
    min_gap_s
        Least seconds between two requests to one host; the general setting where None.
    tls
        ``legacy`` accepts protocols and keys of twenty years ago, for a server that has no
        others. Its certificate is checked as ever.
    """

    allow_private: bool = False
    connect_to: str | None = None
    min_gap_s: float | None = None
    tls: TlsProfile = "strict"


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of the catalogue: a publisher that is watched.

    Attributes
    ----------
    source
        Short name: lower-case letters, digits and dashes.
    timezone
        IANA zone of the publisher; dates without a zone are read in it.
    reach
        ``wide``, ``local`` or ``trade``: which keyword rules apply.
    weight
        Importance, > 0; 1 is ordinary, larger matters more.
    identity
        What an entry is known by: ``guid``, ``link`` or ``title-date``; ``auto`` is the
        guid where it can be trusted, else the link, and recognises what was renamed.
    max_entries
        Entries of one listing that are looked at, newest first; the general setting where
        None.
    file
        Catalogue file it was read from, for messages.
    """

    source: str
    title: str
    url: str
    kind: Kind = "auto"
    language: str | None = None
    timezone: str = "UTC"
    country: str | None = None
    tags: tuple[str, ...] = ()
    reach: Literal["wide", "local", "trade"] = "wide"
    weight: float = 1.0
    identity: Identity = "auto"
    max_entries: int | None = None
    poll: PollRules = field(default_factory=PollRules)
    list: ListRules = field(default_factory=ListRules)
    extract: ExtractRules = field(default_factory=ExtractRules)
    http: HttpRules = field(default_factory=HttpRules)
    file: str = ""


@dataclass(frozen=True, slots=True)
class Validators:
    """What a server gave us to ask "anything new?" with.

    Attributes
    ----------
    url
        Address that gave them, after redirects: they are sent there and nowhere else.
        None means the address that is asked for.
    """

    etag: str | None = None
    last_modified: str | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Hop:
    """One answer on the way to a page: a redirect, or the last one."""

    url: str
    status: int
    location: str | None = None


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page that came, whole and within the caps.

    Attributes
    ----------
    url, final_url
        Address asked for, and the one that answered after redirects.
    headers
        Response headers in order of arrival, names as sent.
    body
        Bytes after content decoding (gzip, br, zstd undone), before any text decoding.
    wire_bytes
        Bytes of body received on the wire, over all hops.
    fetched_at, elapsed_s
        When the last byte came, and how long the whole exchange took.
    """

    url: str
    final_url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    fetched_at: datetime
    elapsed_s: float
    wire_bytes: int
    validators: Validators = field(default_factory=Validators)
    content_type: str | None = None
    http_version: str = "HTTP/1.1"
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class NotModified:
    """The server said 304: the page is as it was."""

    url: str
    fetched_at: datetime
    elapsed_s: float
    wire_bytes: int
    validators: Validators = field(default_factory=Validators)
    hops: tuple[Hop, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """An item as listed by a feed, sitemap or list page.

    Attributes
    ----------
    url
        Absolute address of the article.
    guid
        The publisher's identifier, where one is given.
    published_at, published_precision
        Declared time (aware UTC) and how exact it is; both None when undated.
    published_basis
        Field the date came from, such as ``"pubDate"``.
    published_note
        What is odd about the declared time: why it was refused, or that it lies ahead.
    summary
        Text of the listing (markup removed), where there is any. Of a post, its whole text.
    content
        The fullest text of the listing as it came, markup and all.
    media
        What it carries besides text: ``photo``, ``video``, ``poll`` …
    note
        Why its text is missing, in words, where the listing says so.
    """

    url: str
    title: str | None = None
    guid: str | None = None
    published_at: datetime | None = None
    published_precision: Precision | None = None
    published_basis: str | None = None
    updated_at: datetime | None = None
    summary: str | None = None
    authors: tuple[str, ...] = ()
    content: str | None = field(default=None, repr=False, compare=False)
    media: tuple[str, ...] = ()
    note: str | None = None
    published_note: str | None = None


@dataclass(frozen=True, slots=True)
class Listing:
    """What a feed, sitemap or list page says.

    Attributes
    ----------
    format
        Such as ``"rss 2.0"``, ``"atom 1.0"``, ``"news sitemap"``, ``"list page"``.
    entries
        In the order of the page.
    children
        Addresses of further sitemaps, for a sitemap index.
    encoding
        Encoding the bytes were read with.
    ttl_s
        The publisher's own hint (``ttl``, ``sy:*``), in seconds.
    older
        Address of the page with the entries before these, where the listing names one.
    """

    format: str
    entries: tuple[Entry, ...]
    title: str | None = None
    encoding: str | None = None
    ttl_s: float | None = None
    children: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    older: str | None = None


@dataclass(frozen=True, slots=True)
class Article:
    """The page behind an entry, extracted.

    Attributes
    ----------
    kind
        ``"article"``; ``"wall"`` (consent, captcha, log-in, paywall), ``"list"`` (of
        articles) or ``"empty"`` for a page that holds none, and then there is no text.
    reason
        Why it holds none, for people.
    extraction
        How the text was got: ``"trafilatura"``, ``"css"``, ``"entry"`` (the listing brings
        it whole), ``"listing"`` (the page could not be had for good: title and summary of
        the listing stand in), or the `method`.
    cpu_s
        Processor seconds the extraction took, `profile_cpu_s` not counted.
    measures, profile
        Of the page, for people and for the drift detectors (packed); None where not taken.
    profile_cpu_s
        Processor seconds they took.
    signature
        What its text is compared with others by, see `models.likeness`; None where it says
        too little, or was not taken.
    """

    title: str | None
    text: str | None
    authors: tuple[str, ...] = ()
    language: str | None = None
    published_at: datetime | None = None
    published_precision: Precision | None = None
    published_basis: str | None = None
    canonical_url: str | None = None
    kind: PageClass = "article"
    reason: str = ""
    extraction: str = "trafilatura"
    warnings: tuple[str, ...] = ()
    cpu_s: float = 0.0
    measures: PageMeasures | None = None
    profile: bytes | None = field(default=None, repr=False)
    profile_cpu_s: float = 0.0
    signature: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PageMeasures:
    """The nine measures of an article page that analysts read: column ``pages.features``."""

    page_bytes: int
    paragraph_chars: int
    n_paragraphs: int
    paragraph_variance: float
    n_links: int
    n_blocks: int
    n_formatting: int
    n_images: int
    n_other: int


@dataclass(frozen=True, slots=True)
class Page:
    """A row of ``pages``: a fetched page and where its raw bytes lie.

    Attributes
    ----------
    measures, profile
        Of an article page, once it was extracted: for people, and for the drift detectors.
    """

    page_id: str
    source: str
    url: str
    fetched_at: datetime
    status: int
    bytes: int
    sha256: str
    warc_file: str
    warc_offset: int
    measures: PageMeasures | None = None
    profile: Packed | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PageVerdict:
    """A row of ``page_verdicts``: what the operational detector says of an article page.

    Attributes
    ----------
    score
        How strange the page is on its own; larger is stranger.
    evidence
        For a change, after this page, as a power of ten; an alarm is at 4.
    gate
        The hard gate that stopped it before it was compared; None where none did.
    """

    page_id: str
    source: str
    judged_at: datetime
    score: float
    suspicious: bool
    reason: str
    evidence: float = 0.0
    gate: str | None = None


@dataclass(frozen=True, slots=True)
class DriftState:
    """A row of ``drift_states``: how a source stands with the drift detectors.

    Attributes
    ----------
    standing
        ``learning`` while there are too few pages to compare with, ``watching``, or what
        was found: ``layout`` (changed, the text is right), ``text`` (it is wrong).
    monitor
        Evidence gathered so far, packed.
    learn_from
        First page of the present layout; empty for all.
    clean_before
        Pages before it are older than the last window found clean; empty for none.
    since_page, since_at
        First suspect page and when it was fetched, where the source drifted.
    channel, place_before, place_after
        What led, and where on the page the text came from before and now.
    n_pages, n_unchecked
        Article pages since `learn_from`, and since the last check of a set.
    is_untold
        Whether a change was found for which no flow run has failed yet.
    """

    source: str
    updated_at: datetime
    standing: Standing = "learning"
    monitor: bytes | None = field(default=None, repr=False)
    learn_from: str = ""
    clean_before: str = ""
    since_page: str | None = None
    since_at: datetime | None = None
    channel: str | None = None
    place_before: str | None = None
    place_after: str | None = None
    reason: str = ""
    n_pages: int = 0
    n_unchecked: int = 0
    is_untold: bool = False

    @property
    def has_drifted(self) -> bool:
        """Whether a change stands."""
        return self.standing in ("layout", "text")


@dataclass(frozen=True, slots=True)
class ReferenceModel:
    """A row of ``reference_models``: what correct pages of a source look like.

    Attributes
    ----------
    state
        The reference, packed, as `models.drift.reference` reads it.
    score
        Share of its own pages that it finds suspicious when they are held out.
    note
        Why it was built, or why a newer one was refused.
    parameters
        What people may want to read of it, JSON-ready.
    """

    source: str
    built_at: datetime
    n_pages: int
    kind: str
    state: bytes = field(repr=False)
    score: float | None = None
    note: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Repair:
    """A row of ``repairs``: another way to get the text of a source whose text went wrong.

    Attributes
    ----------
    way, selector
        How the text would be got: a `method` of `ExtractRules`, or ``css`` with a selector.
    state
        ``proposed``, ``adopted`` or ``dropped``.
    n_pages, n_fitting, n_fitting_now
        Suspect pages it was tried on; how many then look like the reference, and how many
        do without it.
    is_clear
        Whether it is good enough to be adopted by itself.
    evidence
        Every way that was tried, with its figures, JSON-ready.
    basis
        The rules of the source's entry it stands in for: once they change, it no longer holds.
    """

    repair_id: str
    source: str
    proposed_at: datetime
    way: str
    selector: str | None
    state: Literal["proposed", "adopted", "dropped"]
    settled_at: datetime | None
    n_pages: int
    n_fitting: int
    n_fitting_now: int
    is_clear: bool
    evidence: list[dict[str, Any]] = field(default_factory=list)
    basis: ExtractRules = field(default_factory=ExtractRules)


@dataclass(frozen=True, slots=True)
class StoredPage:
    """An article as it stands, and the page its text was made from."""

    article_id: str
    changed_at: datetime
    version: int
    kind: str
    title: str | None
    text: str | None
    quarantined: bool
    listed_title: str | None
    page: Page


@dataclass(frozen=True, slots=True)
class DriftAlarm:
    """A change found while pages came in: what a poll stores of it, once.

    Attributes
    ----------
    state
        How the source stands from now on.
    subject, text
        The notice: one line, and all that is known.
    """

    state: DriftState
    subject: str
    text: str


@dataclass(frozen=True, slots=True)
class KnownEntry:
    """What the warehouse knows of a listed entry: its id and how it was last listed.

    Attributes
    ----------
    url, guid, title, published_at
        As it was first listed; all but `url` only where an entry may be known by them.
    """

    entry_id: str
    fingerprint: str
    url: str = ""
    guid: str | None = None
    title: str | None = None
    published_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be stored for the first time."""

    entry_id: str
    entry: Entry
    fingerprint: str


@dataclass(frozen=True, slots=True)
class PendingArticle:
    """An entry whose article page has yet to be had.

    Attributes
    ----------
    attempts
        Failed attempts so far.
    next_try_at
        Not before this time.
    first_url
        Address it was first listed under, which names its article; None for `url`.
    """

    entry_id: str
    url: str
    title: str | None
    summary: str | None
    published_at: datetime | None
    attempts: int = 0
    next_try_at: datetime | None = None
    reason: str | None = None
    first_url: str | None = None


@dataclass(frozen=True, slots=True)
class StoredArticle:
    """An article as extracted from one page, ready to be stored.

    ``page`` is None only where the listing stands in for a page that cannot be had.
    A quarantined one is kept, but shown to nobody who does not ask for it, and raises no
    alarm.
    """

    article_id: str
    entry_id: str
    url: str
    article: Article
    published_at: datetime | None
    published_basis: str | None
    stored_at: datetime
    page: Page | None
    quarantined: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """When to poll next, and everything the choice was made from.

    Attributes
    ----------
    due_at
        The next poll.
    reason
        One sentence for people.
    policy
        Name of the policy that chose.
    inputs
        All that went in, JSON-ready; fed back in, it gives the same decision bit for bit.
    """

    due_at: datetime
    reason: str
    policy: str
    inputs: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Conduct:
    """How a source's server has behaved, as far as the next poll must know.

    Attributes
    ----------
    body_at
        When its list last came whole.
    n_not_modified
        Answers "not modified" in a row since then.
    n_expected
        Entries that should have come out meanwhile, by the source's habits.
    distrusted_at
        Since when its validators are not believed; None while they are.
    moved_to, moved_since, n_moved
        Where its address redirects to for good, since when, and in how many polls.
    address, address_of
        The address it is polled at since such a move was confirmed, and the one of the
        catalogue that it stands in for: once that changes, it no longer holds.
    n_gone
        Answers "gone" (410) in a row.
    """

    body_at: datetime | None = None
    n_not_modified: int = 0
    n_expected: float = 0.0
    distrusted_at: datetime | None = None
    moved_to: str | None = None
    moved_since: datetime | None = None
    n_moved: int = 0
    address: str | None = None
    address_of: str | None = None
    n_gone: int = 0


@dataclass(frozen=True, slots=True)
class Schedule:
    """A row of ``schedule``: what comes next for a source.

    Attributes
    ----------
    cycle
        Number of the poll that is due; a run claims it, then it moves on by one.
    lease_until
        A claimed poll must be over by then; None when no poll runs.
    body_sha256
        Digest of the last index body: the same body again is nothing new, whatever
        the validators say.
    """

    source: str
    due_at: datetime
    reason: str
    state: State = "active"
    cycle: int = 1
    consecutive_failures: int = 0
    validators: Validators = field(default_factory=Validators)
    host_not_before: datetime | None = None
    lease_until: datetime | None = None
    body_sha256: str | None = None
    last_success_at: datetime | None = None
    conduct: Conduct = field(default_factory=Conduct)


@dataclass(frozen=True, slots=True)
class Incident:
    """A row of ``incidents``: something that stands until it is mended.

    Attributes
    ----------
    kind
        What it is, see `models.incidents`.
    subject
        The source or the registered domain it is about; empty for our own line.
    reason
        In one line.
    evidence
        What it was concluded from, JSON-ready.
    """

    kind: IncidentKind
    subject: str
    begun_at: datetime
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> tuple[IncidentKind, str]:
        """What tells it from others that stand at the same time."""
        return self.kind, self.subject


@dataclass(frozen=True, slots=True)
class Poll:
    """A row of ``polls``: one look at a source, whatever came of it."""

    poll_id: str
    source: str
    cycle: int
    due_at: datetime
    started_at: datetime
    finished_at: datetime
    outcome: Outcome
    http_status: int | None
    reason: str
    entries_listed: int
    entries_new: int
    articles_stored: int
    overlap: bool | None
    possible_loss: bool
    index_bytes: int
    article_bytes: int
    cpu_s: float
    decision: Decision

    @property
    def is_failure(self) -> bool:
        """Whether the source could not be read."""
        return self.outcome in FAILURES


@dataclass(frozen=True, slots=True)
class RuleHit:
    """A row of ``rule_hits``: a keyword rule that matched an article.

    Attributes
    ----------
    level, rule_level
        Urgency as raised, and as the rule has it; 1 (at once) to 5 (keep).
    group
        Of the rule; channels are chosen by it.
    term, mode
        What the rule has for the matched words, and how they were compared.
    start, end
        First place of `matched`, in characters of title and text.
    explanation
        Why it matched, in words.
    """

    article_id: str
    rule: str
    level: int
    rule_level: int
    group: str
    term: str
    mode: str
    matched: str
    start: int
    end: int
    n_places: int
    sentence: str
    explanation: str


@dataclass(frozen=True, slots=True)
class PollResult:
    """Everything one poll stores, in one transaction.

    Attributes
    ----------
    entries
        Listed for the first time.
    relisted
        ``(entry_id, entry, fingerprint)`` of known entries whose listing changed.
    articles
        New articles and new versions of known ones; which is which, the warehouse knows.
    pending
        Entries whose page failed and is to be tried again.
    settled
        Entry ids that need no further try.
    hits
        Of keyword rules, on `articles`; stored with the versions that are new.
    labels
        Tags of the source, for channels to be chosen by.
    verdicts
        What the drift detector says of each article page.
    drift
        How the source stands after them; None where no article page came.
    alarm
        The change that these pages revealed.
    begun, ended
        Incidents that the poll showed to have begun, and those it showed to be over.
    """

    poll: Poll
    schedule: Schedule
    entries: tuple[NewEntry, ...] = ()
    relisted: tuple[NewEntry, ...] = ()
    pages: tuple[Page, ...] = ()
    articles: tuple[StoredArticle, ...] = ()
    pending: tuple[PendingArticle, ...] = ()
    settled: tuple[str, ...] = ()
    hits: tuple[RuleHit, ...] = ()
    labels: tuple[str, ...] = ()
    verdicts: tuple[PageVerdict, ...] = ()
    drift: DriftState | None = None
    alarm: DriftAlarm | None = None
    begun: tuple[Incident, ...] = ()
    ended: tuple[tuple[IncidentKind, str], ...] = ()


@dataclass(frozen=True, slots=True)
class RecentPoll:
    """A past poll as people are shown it.

    Attributes
    ----------
    mean_lag_s
        Mean publication lag of the dated articles it stored, in seconds; None where none.
    next_reason
        Why the poll after it was set when it was.
    """

    poll_id: str
    started_at: datetime
    finished_at: datetime
    outcome: Outcome
    http_status: int | None
    reason: str
    entries_listed: int
    entries_new: int
    articles_stored: int
    possible_loss: bool
    index_bytes: int
    article_bytes: int
    mean_lag_s: float | None
    next_due_at: datetime | None
    next_reason: str


@dataclass(frozen=True, slots=True)
class StoredCounts:
    """What storing a poll added to the warehouse.

    Attributes
    ----------
    articles, versions
        New articles, and new versions of known ones.
    hits
        Keyword rules that matched them.
    is_repeat
        True when the poll was stored before: nothing was done.
    """

    entries: int = 0
    pages: int = 0
    articles: int = 0
    versions: int = 0
    hits: int = 0
    is_repeat: bool = False


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """A source as ``newsbeat status`` shows it.

    Attributes
    ----------
    due_at
        The next poll; None for a source without a schedule.
    last_outcome, last_reason, last_poll_at
        Of the last poll; None, empty and None before the first.
    n_articles_24h
        Articles stored in the 24 hours before the moment the status is for.
    n_pending
        Entries whose article page has yet to be had.
    mean_lag_s, median_lag_s
        Publication lag in seconds, without what was listed before the source was watched.
    """

    source: str
    title: str
    kind: str
    state: State
    reason: str
    due_at: datetime | None
    consecutive_failures: int
    last_success_at: datetime | None
    last_outcome: Outcome | None
    last_reason: str
    last_poll_at: datetime | None
    n_polls: int
    n_entries: int
    n_articles: int
    n_articles_24h: int
    n_pending: int
    mean_lag_s: float | None
    median_lag_s: float | None
    n_possible_losses: int
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Observed:
    """What the polls of one source covered and found, since some moment.

    Attributes
    ----------
    since_s, until_s
        The stretch covered, seconds since 1970.
    stamps_s
        When its entries came out, as far as can be told.
    window
        Most entries a listing held.
    """

    source: str
    since_s: float
    until_s: float
    stamps_s: tuple[float, ...]
    window: int


@dataclass(frozen=True, slots=True)
class FittedModel:
    """A row of ``intensity_models``: what was learned of when a source publishes.

    Attributes
    ----------
    kind
        The estimator that foretold held-out weeks best: ``weekly``, ``holt-winters``, ``ema``.
    policy
        ``price``, or ``plan`` where that proved better.
    state
        What all estimators know, as `models.intensity.state.write_state` writes it.
    score
        How well `kind` foretold data it had not seen, larger is better; None where there
        was too little to tell.
    note
        Why this estimator and policy, and what fell back, in words.
    parameters
        What people may want to read of it, JSON-ready.
    """

    source: str
    fitted_at: datetime
    kind: str
    policy: str
    state: bytes = field(repr=False)
    score: float | None = None
    note: str = ""
    parameters: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HourlyForecast:
    """Rows of ``forecasts``: what one source is expected to publish, hour by hour.

    Attributes
    ----------
    from_at
        Start of the first hour, a whole hour in UTC.
    kind
        The estimator.
    expected, low, high
        Entries of each hour, and the range that holds nine in ten. Same length.
    """

    source: str
    from_at: datetime
    made_at: datetime
    kind: str
    expected: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class BudgetReport:
    """A row of ``budget``: how the price follows the budget.

    Attributes
    ----------
    currency
        ``polls`` or ``MB``.
    planned_per_day
        What a day may cost; None where only a lag is promised.
    spent_per_day
        What was spent of late, scaled to a day; None while too short a time has passed.
    price
        Entry-seconds of waiting that a poll must save, per unit of its cost.
    expected_per_day, expected_polls_per_day
        What a day costs at that price, and its polls.
    expected_lag_s
        Mean wait of an entry until the poll that finds it; None while nothing is expected.
    overload
        What the price was multiplied by, as polls began late; 1 while they are in time.
    """

    reckoned_at: datetime
    currency: str
    planned_per_day: float | None
    spent_per_day: float | None
    price: float
    expected_per_day: float
    expected_polls_per_day: float
    expected_lag_s: float | None
    overload: float = 1.0
