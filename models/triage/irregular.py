"""English forms that no stemmer finds: went, fell, children."""

from __future__ import annotations

_VERBS = """
arise arose arisen; be was were been is are am; bear bore borne; beat beaten; become became;
begin began begun; bend bent; bind bound; bite bit bitten; bleed bled; blow blew blown;
break broke broken; bring brought; build built; burn burnt; buy bought; catch caught;
choose chose chosen; come came; creep crept; deal dealt; dig dug; do did done does; draw drew drawn;
drink drank drunk; drive drove driven; eat ate eaten; fall fell fallen; feed fed; feel felt;
fight fought; find found; flee fled; fling flung; fly flew flown; forbid forbade forbidden;
forget forgot forgotten; freeze froze frozen; get got gotten; give gave given; go went gone goes;
grow grew grown; hang hung; have had has; hear heard; hide hid hidden; hold held; keep kept;
kneel knelt; know knew known; lay laid; lead led; leap leapt; learn learnt; leave left; lend lent;
lose lost; make made; mean meant; meet met; pay paid; ride rode ridden; ring rang rung;
rise rose risen; run ran; say said; see saw seen; seek sought; sell sold; send sent;
shake shook shaken; shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung;
sink sank sunk; sit sat; slay slew slain; sleep slept; slide slid; speak spoke spoken;
speed sped; spend spent; spill spilt; spin spun; spring sprang sprung; stand stood;
steal stole stolen; stick stuck; sting stung; strike struck stricken; swear swore sworn;
sweep swept; swell swollen; swim swam swum; swing swung; take took taken; teach taught;
tear tore torn; tell told; think thought; throw threw thrown; wake woke woken; wear wore worn;
weep wept; win won; withdraw withdrew withdrawn; write wrote written
"""

_NOUNS = """
child children; man men; woman women; person people; foot feet; tooth teeth; goose geese;
mouse mice; ox oxen; knife knives; life lives; wife wives; leaf leaves; thief thieves; wolf wolves;
half halves; shelf shelves; loaf loaves; crisis crises; analysis analyses; basis bases;
hypothesis hypotheses; criterion criteria; phenomenon phenomena; bacterium bacteria;
virus viruses; fireman firemen; policeman policemen; gunman gunmen; fisherman fishermen;
spokesman spokesmen; spokeswoman spokeswomen; salesman salesmen
"""


def _read(*tables: str) -> dict[str, tuple[str, ...]]:
    bases: dict[str, tuple[str, ...]] = {}
    for line in ";".join(tables).split(";"):
        base, *forms = line.split()
        for form in forms:
            bases[form] = (*bases.get(form, ()), base)
    return bases


IRREGULAR = _read(_VERBS, _NOUNS)
"""Form to the words it belongs to."""


def bases_of(form: str) -> tuple[str, ...]:
    """Return the words an irregular form belongs to, none where it is regular.

    Examples
    --------
    >>> bases_of("struck"), bases_of("flood")
    (('strike',), ())
    """
    return IRREGULAR.get(form, ())
