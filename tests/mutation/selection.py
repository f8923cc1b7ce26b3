"""Which tests stand guard over which module: few, fast without a compiler, the most direct first."""

ROOMS = {
    "problem": ["problem.py"],
    "intervals": ["intervals.py"],
    "policies": ["policies/*.py"],
    "theory": ["theory/*.py"],
}

_NOT_DECIDING = ("checking", "files", "identity", "inspection", "references", "refusals", "trial")
LEFT_OUT = {f"thrifty.policies.{name}" for name in _NOT_DECIDING}
"""Modules that decide nothing: they read, check and cite policies."""

_POLICIES = "tests/policies"
_PINS = f"{_POLICIES}/test_pins.py"
_TWINS = f"{_POLICIES}/test_twins.py"


def _twins(*names: str) -> list[str]:
    """The pins, then the twins of these policies on two instances."""
    chosen = " or ".join(names)
    return [_PINS, _TWINS, "-k", f"test_pins or (not other_choices and (close or (far and not 4.0)) and ({chosen}))"]


_TESTS = {
    "thrifty.problem": ["tests/test_problem_limits.py", "tests/test_problem.py", "-k", "not no_feasible_arm_is_cheaper"],
    "thrifty.intervals": [
        "tests/test_intervals.py",
        "-k",
        "not covers and not hardly_ever and not holds_for and not lower_the_regret",
    ],
    "thrifty.policies.baselines": _twins("ucb1", "[ts", "scalarised", "best-known", "round-robin", "cheapest", "uniform", "oracle"),
    "thrifty.policies.binding": [f"{_POLICIES}/test_range.py", _PINS, "-k", "not other_pieces and not hide"],
    "thrifty.policies.cof": [
        f"{_POLICIES}/test_cof.py",
        _PINS,
        _TWINS,
        "-k",
        "TestParts or defaults_and_ranges or (not other_choices and (close or (far and not 4.0)) and cof)",
    ],
    "thrifty.policies.evidence": [f"{_POLICIES}/test_cof.py", "-k", "TestEvidence or TestParts"],
    "thrifty.policies.cs_balance": [
        f"{_POLICIES}/test_cs_balance.py",
        _PINS,
        _TWINS,
        "-k",
        "TestParts or until or defaults_and_ranges or (not other_choices and (close or (far and not 4.0)) and cs-balance)",
    ],
    "thrifty.policies.plans": [f"{_POLICIES}/test_cs_balance.py", "-k", "plan"],
    "thrifty.policies.pairs": [
        f"{_POLICIES}/test_pairs.py",
        f"{_POLICIES}/test_cs_balance.py",
        "-k",
        "not TestBehaviour and not grows",
    ],
    "thrifty.policies.weighing": [f"{_POLICIES}/test_cs_balance.py", _TWINS, "-k", "TestParts or (close and cs-balance)"],
    "thrifty.policies.cs_direct": _twins("cs-direct"),
    "thrifty.policies.cs_etc": _twins("cs-etc"),
    "thrifty.policies.cs_exp3": _twins("cs-exp3"),
    "thrifty.policies.cs_ids": _twins("draws"),
    "thrifty.policies.cs_ts": _twins("cs-ts"),
    "thrifty.policies.cs_ucb": _twins("cs-ucb"),
    "thrifty.policies.cs_worth": _twins("cs-worth"),
    "thrifty.policies.elimination": [
        f"{_POLICIES}/test_elimination.py",
        _PINS,
        _TWINS,
        "-k",
        "test_elimination or defaults_and_ranges or (not other_choices and (close or far or one) and pe)",
    ],
    "thrifty.policies.exploration": _twins("cs-etc"),
    "thrifty.policies.information": _twins("draws"),
    "thrifty.policies.ladder": [f"{_POLICIES}/test_ladder_plain.py"],
    "thrifty.policies.maxima": [f"{_POLICIES}/test_ladder_plain.py"],
    "thrifty.policies.one_shot_etc": _twins("one-shot-etc"),
    "thrifty.policies.outlook": [_PINS],
    "thrifty.policies.posteriors": _twins("cs-ts"),
    "thrifty.policies.step": [f"{_POLICIES}/test_range.py", _PINS, _TWINS, "-k", "refuse or test_pins or (close and cs-etc)"],
    "thrifty.policies.selection": [f"{_POLICIES}/test_selection.py", "-k", "not obvious_twin"],
}
_THEORY = {"reduction": "factory"}  # whose tests are in the file of another module
# Tests of the theory that simulate many rounds.
_SLOW = ("measured", "noisy", "keeps", "at_least_the_cost", "unbiased", "learns", "heads_stays", "factor_of_one")
_SELECT_THEORY = ["--doctest-modules", "-k", " and ".join(f"not {word}" for word in _SLOW)]


def tests_of(module: str) -> list[str]:
    """The arguments of pytest."""
    _, room, *names = module.split(".")
    if room == "theory" and names:
        return [f"tests/theory/test_{_THEORY.get(names[0], names[0])}.py", f"src/thrifty/theory/{names[0]}.py", *_SELECT_THEORY]
    return _TESTS.get(module, [_PINS, f"{_POLICIES}/test_contract.py", "-k", "test_pins or (TestSpecs and not obeyed)"])
