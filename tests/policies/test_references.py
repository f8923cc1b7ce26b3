import re
from pathlib import Path

import pytest

from thrifty import list_policies
from thrifty.policies.references import BIBTEX, CITATIONS, cite

ROOT = Path(__file__).parent.parent.parent


def test_every_policy_has_a_citation_and_nothing_else_has() -> None:
    assert set(CITATIONS) == set(list_policies())


@pytest.mark.parametrize("name", CITATIONS)
def test_what_an_origin_names_is_cited(name: str) -> None:
    citation = CITATIONS[name]
    assert set(re.findall(r"\[(\w+)\]", citation.origin)) <= set(citation.keys)
    assert set(citation.keys) <= set(BIBTEX)
    assert ("thrifty" in citation.keys) == ("no publication of its own" in citation.origin)
    assert cite(name).count("\n@") == len(citation.keys)


@pytest.mark.parametrize("key", BIBTEX)
def test_an_entry_is_well_formed(key: str) -> None:
    entry = BIBTEX[key]
    assert re.match(rf"@(article|inproceedings|misc|software)\{{{key},\n", entry)
    assert entry.count("{") == entry.count("}")
    assert entry.isascii()
    if key != "thrifty":
        assert re.search(r"  year +=", entry)[0]  # type: ignore[index]
        assert key[-4:] in entry.partition(",")[2] or key[-5:-1] in entry.partition(",")[2]


def test_thrifty_is_cited_as_its_citation_file_says() -> None:
    title = re.search(r'^title: "(.*)"$', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    author = re.search(r'^  - name: "(.*)"$', (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert title is not None
    assert author is not None
    assert title[1] in BIBTEX["thrifty"]
    assert author[1] in BIBTEX["thrifty"]


def test_a_policy_of_your_own_cites_you() -> None:
    assert cite("greedy").startswith("% greedy: not one of thrifty's policies: cite its author")
