"""Tests of the grammar, the minimiser and the comparison of random cases."""

from __future__ import annotations

import contextlib
import json
import random
import re

from gmongo import MongoClient
from gmongo.testing import Deployment

from .__main__ import SHARE_LIMIT, Comparison, permitted_share
from .grammar import RULES, Grammar
from .minimise import minimise


def test_grammar_references_each_rule_and_only_existing_rules():
    assert set(re.findall("<([a-z ]+)>", json.dumps(RULES))) | set(RULES["scenario"]) | {"scenario"} == set(RULES)


def test_limit_of_differences_includes_three_standard_deviations():
    shares = [round(permitted_share(number), 5) for number in (0, 5000, 300_000)]
    assert shares == [SHARE_LIMIT, 0.00532, 0.0033]


def test_grammars_with_equal_seeds_produce_equal_cases():
    first, second = (Grammar(random.Random(5)) for _ in range(2))
    for family in RULES["scenario"]:
        assert first.case(family) == second.case(family)


def test_validator_never_contains_filter_limit_that_crashes_mongod():
    validator_rules, pending = set(), ["validator"]
    while pending:
        validator_rules.add(rule := pending.pop())
        pending += {*re.findall("<([a-z ]+)>", json.dumps(RULES[rule]))} - validator_rules
    assert [rule for rule in validator_rules if '"limit' in json.dumps(RULES[rule])] == []


def test_minimised_case_contains_only_parts_that_cause_difference():
    fields = {
        "documents": [{"_id": 0, "a": [1, 2], "b": 1}, {"_id": 1}],
        "run": [{"find": "cases"}, {"count": "cases"}],
    }
    found = minimise(fields, lambda case: "2" in json.dumps(case.get("documents", [])))
    assert found == {"documents": [{"_id": 0, "a": 2}], "run": [{"count": "cases"}]}


def test_minimiser_keeps_case_after_its_time_limit(monkeypatch):
    monkeypatch.setattr("tests.simulation.fuzz.minimise._MAX_SECONDS", 0.0)
    fields = {"run": [{"find": "cases"}, {"count": "cases"}]}
    assert minimise(fields, lambda case: True) == fields


def test_comparison_counts_difference_and_prints_minimised_case(capsys):
    with contextlib.ExitStack() as stack:
        first, second = (
            stack.enter_context(MongoClient(stack.enter_context(Deployment.replica_set(1, log=False)).uri)).fuzz
            for _ in range(2)
        )
        comparison = Comparison(first, second)
        grammar = Grammar(random.Random(5))
        for family in RULES["scenario"]:
            comparison.run_case(family, grammar.case(family))
        assert comparison.counts["differ"] == 0 < comparison.counts["same"]
        run = comparison._run
        comparison._run = lambda side, fields: [
            {**reply, "n": 7} if side is second and "n" in reply else reply for reply in run(side, fields)
        ]
        comparison.run_case("reads", {"each": True, "run": [{"find": "cases"}, {"count": "cases", "query": {"a": 1}}]})
        assert comparison.counts["reads differ"] == 1
    shown = json.loads(capsys.readouterr().out.splitlines()[0])
    assert shown["run"] == [{"count": "cases"}]
    assert shown["answers"] == [{"n": 0, "ok": 1.0}] or shown["answers"] == [{"n": 0}]
