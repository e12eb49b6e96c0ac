"""Write digests of the values that feedjira's specifications expect: ``feedjira.json``.

``python benchmarks/suites/make_feedjira.py FOLDER``, the folder being a checkout of feedjira
(MIT licence). The collection holds its feeds, but not the specifications beside them. Only
plain statements about the first entry are read: ``expect(@entry.title).to eq "x"``.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from suites.feeds import BASE, FEEDJIRA
from suites.values import digest, moment_of, settled

_SAMPLE = re.compile(r"(\w+): \"([\w.]+)\"")
_LINE = re.compile(
    r"parse[( ]\(?(?P<sample>sample_\w+)"
    r"|(?P<name>\w+) = (?:Feedjira::Util::ParseTime\.call )?(?P<value>\"(?:[^\"\\]|\\.)*\")"
    r"|expect\((?:@entry|feed\.entries\[(?P<place>\d)\])\.(?P<field>\w+)\)\.to eq"
    r" (?:Feedjira::Util::ParseTime\.call\()?(?P<stated>\"(?:[^\"\\]|\\.)*\"|\w+)"
)
_FIELDS = {
    "title": "title", "url": "link", "id": "id", "entry_id": "id", "published": "date",
    "author": "author",
}  # fmt: skip
_SET_BY_THE_TEST = "Foobar"


def main(folder: Path) -> None:
    """Write the digests."""
    specs = folder / "spec"
    files = dict(_SAMPLE.findall((specs / "sample_feeds.rb").read_text(encoding="utf-8")))
    found: dict[str, Any] = {}
    for spec in sorted((specs / "feedjira" / "parser").glob("*entry_spec.rb")):
        sample, known = "", {}
        for line in _LINE.finditer(spec.read_text(encoding="utf-8")):
            if line["sample"]:
                sample = line["sample"]
            elif line["name"]:
                known[line["name"]] = line["value"]
            elif line["field"] in _FIELDS and sample in files:
                value = ast.literal_eval(known.get(line["stated"], line["stated"]))
                kind = _FIELDS[line["field"]]
                if value != _SET_BY_THE_TEST:
                    values = found.setdefault(files[sample], {}).setdefault(
                        line["place"] or "0", {}
                    )
                    values[kind] = digest(settled(kind, _read(kind, value), BASE))
    FEEDJIRA.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _read(kind: str, text: str) -> Any:
    if kind != "date":
        return text
    with suppress(ValueError):
        return datetime.strptime(text, "%a %b %d %H:%M:%S UTC %Y").replace(tzinfo=UTC)
    return moment_of(text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
