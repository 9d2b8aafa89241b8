"""Explanations survive a trip through JSON, and nothing else passes for one."""

import json
from types import NoneType

import numpy as np
import pytest

from bayescase import BayesianCaseModel
from bayescase.explaining.explanation import CaseExplanation, Explanation


@pytest.mark.parametrize("which", ["table", "words", "alone", "keyless"])
def test_json_and_back(which, request):
    model = request.getfixturevalue(which)
    found = [model.explain(), *(model.explain_case(i) for i in range(4)), model.explain_agreement(0)]
    if model.n_clusters_ > 1:
        found.append(model.explain_pair(0, 1))
    found.extend(found[0].clusters)
    for explanation in found:
        text = json.dumps(explanation.to_json(), allow_nan=False)
        back = Explanation.from_json(json.loads(text))
        assert back == explanation
        assert type(back) is type(explanation)
        assert str(back) == str(explanation)
        assert json.dumps(back.to_json()) == text


def test_json_keeps_the_types_of_values():
    table = {
        "word": ["a", "b", "a", None] * 4,
        "yes": [True, False, True, True] * 4,
        "whole": [1, 2, 1, 1] * 4,
        "half": [0.5, 1.5, 0.5, np.nan] * 4,
    }
    encoder = {"feature_types": {"half": "category"}}
    model = BayesianCaseModel(2, encoder=encoder, n_iter=30, n_chains=1, random_state=0).fit(table)
    case = Explanation.from_json(json.loads(json.dumps(model.explain_case(0).to_json())))
    assert isinstance(case, CaseExplanation)
    assert [type(f.value) for f in case.features] == [type(f.value) for f in model.explain_case(0).features]
    gap = Explanation.from_json(json.loads(json.dumps(model.explain_case(3).to_json())))
    assert gap.features[0].value is None
    assert gap.features[0].cluster is None
    assert gap.features[0].agrees is None


KINDS = ("nonsense", ["ClusterExplanation"], "ModelExplanation", "Prototype", "__class__", None)
HOSTILE = [None, 3, "x", [], {}, *({"kind": kind} for kind in KINDS), {"kind": "PairExplanation", "first": 0}]


@pytest.mark.parametrize("value", HOSTILE, ids=repr)
def test_hostile_json_is_refused(value):
    with pytest.raises(ValueError, match="not an explanation of bayescase"):
        Explanation.from_json(value)


def wrong_part(value, where):
    for key in where:
        value = value[key]
    return value


def damaged(value, path=()):
    """(where, copy of the value with one part of another type) for every part that has a type of its own."""
    items = value.items() if isinstance(value, dict) else list(enumerate(value[:1])) if isinstance(value, list) else ()
    for key, item in items:
        for wrong in ([{"a": 1}], {"b": []}, "text", 7, None):
            if type(wrong) is not type(item):
                yield (*path, key), {**value, key: wrong} if isinstance(value, dict) else [wrong, *value[1:]]
        for where, copy in damaged(item, (*path, key)):
            yield where, {**value, key: copy} if isinstance(value, dict) else [copy, *value[1:]]


def test_json_with_a_part_of_another_type_is_refused(table):
    for explanation in (table.explain_agreement(0), table.explain_case(0), table.explain_pair(0, 1)):
        for where, wrong in damaged(explanation.to_json()):
            part = wrong_part(wrong, where)
            of_a_feature = where[0] == "features"
            anything = where[-1] == "value" or where[-2:-1] == ("values",) or (of_a_feature and where[-1] == "prototype")
            gap = part is None and of_a_feature and where[-1] in ("cluster", "cluster_probability", "agrees")
            gap |= part is None and (where[-2:-1] == ("agrees",) or (where in (("name",),) and "memberships" in wrong))
            gap |= part is None and where[-1] == "there" and "more_often" in where
            whole = part == 7 and isinstance(wrong_part(explanation.to_json(), where), float)
            if gap or (anything and isinstance(part, (str, int, NoneType))) or whole:
                assert Explanation.from_json(wrong) != explanation
            else:
                with pytest.raises(ValueError, match="not an explanation"):
                    Explanation.from_json(wrong)


def test_json_of_another_kind_is_refused(table):
    assert isinstance(CaseExplanation.from_json(table.explain_case(0).to_json()), CaseExplanation)
    with pytest.raises(ValueError, match="not an explanation"):
        CaseExplanation.from_json(table.explain_pair(0, 1).to_json())
