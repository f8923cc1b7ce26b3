"""What to cite for a policy, as BibTeX: where it was published, or what it follows if it stands only here."""

from dataclasses import dataclass

from thrifty import __version__

BIBTEX = {
    "Sinha2021": """\
@inproceedings{Sinha2021,
  author    = {Sinha, Deeksha and Sankararaman, Karthik Abinav and Kazerouni, Abbas and Avadhanula, Vashist},
  title     = {Multi-Armed Bandits with Cost Subsidy},
  booktitle = {Proceedings of the 24th International Conference on Artificial Intelligence and Statistics},
  series    = {Proceedings of Machine Learning Research},
  volume    = {130},
  pages     = {3016--3024},
  year      = {2021}
}""",
    "Juneja2025": """\
@inproceedings{Juneja2025,
  author    = {Juneja, Ishank and Joe-Wong, Carlee and Ya{\\u{g}}an, Osman},
  title     = {Pairwise Elimination with Instance-Dependent Guarantees for Bandits with Cost Subsidy},
  booktitle = {International Conference on Learning Representations},
  year      = {2025}
}""",
    "Juneja2026": """\
@misc{Juneja2026,
  author = {Juneja, Ishank and Joe-Wong, Carlee and Ya{\\u{g}}an, Osman},
  note   = {arXiv 2605.07171},
  year   = {2026}
}""",
    "Auer2002": """\
@article{Auer2002,
  author  = {Auer, Peter and Cesa-Bianchi, Nicol{\\`o} and Fischer, Paul},
  title   = {Finite-time Analysis of the Multiarmed Bandit Problem},
  journal = {Machine Learning},
  volume  = {47},
  pages   = {235--256},
  year    = {2002}
}""",
    "Auer2002b": """\
@article{Auer2002b,
  author  = {Auer, Peter and Cesa-Bianchi, Nicol{\\`o} and Freund, Yoav and Schapire, Robert E.},
  title   = {The Nonstochastic Multiarmed Bandit Problem},
  journal = {SIAM Journal on Computing},
  volume  = {32},
  number  = {1},
  pages   = {48--77},
  year    = {2002}
}""",
    "Thompson1933": """\
@article{Thompson1933,
  author  = {Thompson, William R.},
  title   = {On the Likelihood that One Unknown Probability Exceeds Another in View of the Evidence of Two Samples},
  journal = {Biometrika},
  volume  = {25},
  number  = {3/4},
  pages   = {285--294},
  year    = {1933}
}""",
    "Russo2018": """\
@article{Russo2018,
  author  = {Russo, Daniel and Van Roy, Benjamin},
  title   = {Learning to Optimize via Information-Directed Sampling},
  journal = {Operations Research},
  volume  = {66},
  number  = {1},
  pages   = {230--252},
  year    = {2018}
}""",
    "Lattimore2021": """\
@inproceedings{Lattimore2021,
  author    = {Lattimore, Tor and Gy{\\"o}rgy, Andr{\\'a}s},
  title     = {Mirror Descent and the Information Ratio},
  booktitle = {Proceedings of the 34th Conference on Learning Theory},
  series    = {Proceedings of Machine Learning Research},
  volume    = {134},
  year      = {2021}
}""",
    "Wilson1927": """\
@article{Wilson1927,
  author  = {Wilson, Edwin B.},
  title   = {Probable Inference, the Law of Succession, and Statistical Inference},
  journal = {Journal of the American Statistical Association},
  volume  = {22},
  number  = {158},
  pages   = {209--212},
  year    = {1927}
}""",
    "thrifty": f"""\
@software{{thrifty,
  author  = {{{{The thrifty authors}}}},
  title   = {{thrifty: the cheapest arm that is good enough, learnt online}},
  version = {{{__version__}}}
}}""",
}
"""Every reference by its key."""


@dataclass(frozen=True)
class Citation:
    """Where a policy comes from, in words, and the keys of what to cite for it."""

    origin: str
    keys: tuple[str, ...]

    def text(self, name: str) -> str:
        """BibTeX, with the origin of the policy `name` in a comment."""
        return "\n\n".join([f"% {name}: {self.origin}", *(BIBTEX[key] for key in self.keys)])


_HERE = "has no publication of its own; cite thrifty"
_BASELINE = Citation(f"a baseline that {_HERE}", ("thrifty",))

CITATIONS = {
    "cs-balance": Citation(
        f"{_HERE}. It is made for the problem of [Sinha2021], with the variance of a score test [Wilson1927]",
        ("thrifty", "Sinha2021", "Wilson1927"),
    ),
    "cs-ids": Citation(
        f"{_HERE}. Information-directed sampling [Russo2018], [Lattimore2021] for the problem of [Sinha2021]",
        ("thrifty", "Russo2018", "Lattimore2021", "Sinha2021"),
    ),
    "cs-ucb": Citation("[Sinha2021] Algorithm 1, and section 5.2 where costs are unknown", ("Sinha2021",)),
    "cs-ts": Citation("[Sinha2021] Algorithm 1, with the posterior sampling of [Thompson1933]", ("Sinha2021", "Thompson1933")),
    "cs-etc": Citation("[Sinha2021] Algorithm 2, and Algorithm 3 where costs are unknown", ("Sinha2021",)),
    "one-shot-etc": Citation("[Sinha2021] section 4: the variant that commits once", ("Sinha2021",)),
    "cs-direct": Citation(f"{_HERE}. It is made for the problem of [Sinha2021]", ("thrifty", "Sinha2021")),
    "cs-worth": Citation(f"{_HERE}. It explores as Algorithm 2 of [Sinha2021] does", ("thrifty", "Sinha2021")),
    "cof": Citation(
        f"{_HERE}. It is made after the abstract of [Juneja2026]; the rest of that work is not known to us",
        ("thrifty", "Juneja2026", "Sinha2021"),
    ),
    "cs-exp3": Citation(
        f"{_HERE}. It brings EXP3 [Auer2002b] to the problem of [Sinha2021]", ("thrifty", "Auer2002b", "Sinha2021")
    ),
    "pe": Citation("[Juneja2025], with a known reference arm; `limit` is ours", ("Juneja2025",)),
    "pe-cs": Citation("[Juneja2025]; `limit` is ours", ("Juneja2025",)),
    "ucb1": Citation("[Auer2002]", ("Auer2002",)),
    "ts": Citation("[Thompson1933]", ("Thompson1933",)),
    "scalarised": Citation(
        f"a baseline that {_HERE}. It is UCB1 [Auer2002] for the linear objective that [Sinha2021] argues against",
        ("thrifty", "Auer2002", "Sinha2021"),
    ),
    "best-known": _BASELINE,
    "round-robin": _BASELINE,
    "cheapest": _BASELINE,
    "uniform": _BASELINE,
    "oracle": _BASELINE,
}
"""What to cite, by the name of the policy."""


def cite(name: str) -> str:
    """What to cite for the policy of this name, as BibTeX.

    >>> print(cite("one-shot-etc").splitlines()[0])
    % one-shot-etc: [Sinha2021] section 4: the variant that commits once
    """
    unknown = Citation("not one of thrifty's policies: cite its author, and thrifty, which played it", ("thrifty",))
    return CITATIONS.get(name, unknown).text(name)
