"""R-hat and effective sample size against ArviZ, the verdict in words, the warning, n_iter="auto" and the way to ArviZ."""

import builtins
import dataclasses
import json
import re
import sys
import types
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import bayescase.sampling.diagnostics
import bayescase.sampling.run
from bayescase import BayesianCaseModel
from bayescase.cli.errors import as_option
from bayescase.cli.main import main
from bayescase.errors import Setting, advise
from bayescase.sampling.diagnostics import (
    QUANTITIES,
    RATES,
    TRACED,
    Found,
    Quantity,
    at_the_cap,
    details,
    ess_bulk,
    ess_tail,
    is_settled,
    r_hat,
    stopped_early,
    what_differs,
)
from bayescase.sampling.differing import Counts
from bayescase.sampling.plan import Round

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # 0.x announces 1.x whenever it is imported
    arviz = pytest.importorskip("arviz", reason="pip install 'bayescase[arviz]'")

CURED = {"n_iter": 400, "n_chains": 4, "random_state": 0}


def wander(chains, sweeps, memory, seed=0):
    """An autoregressive process: memory 0 is independent draws, near 1 hardly moves, below 0 jumps to and fro."""
    rng = np.random.default_rng(seed)
    x = np.zeros((chains, sweeps))
    x[:, 0] = rng.normal(size=chains)
    for t in range(1, sweeps):
        x[:, t] = memory * x[:, t - 1] + np.sqrt(1 - memory**2) * rng.normal(size=chains)
    return x


SERIES = {
    "independent": wander(4, 200, 0.0),
    "slow": wander(4, 200, 0.9),
    "stuck": wander(3, 120, 0.999),
    "antithetic": wander(4, 100, -0.9),
    "odd": wander(4, 101, 0.5),
    "shifted": wander(4, 150, 0.3) + np.arange(4)[:, None],
    "wider": wander(4, 150, 0.3) * np.arange(1, 5)[:, None],
    "heavy tails": np.random.default_rng(1).standard_cauchy((4, 200)),
    "few values": np.round(wander(4, 300, 0.6)),
    "drifting": wander(2, 200, 0.2) + np.linspace(0, 3, 200),
    "one chain": wander(1, 300, 0.5),
    "five sweeps": wander(4, 5, 0.0),
    "four sweeps": wander(2, 4, 0.0),
    "one jump": np.where(np.arange(80) < np.array([[10], [80]]), 0.0, 1.0),
}


# --- R-hat and effective sample size --------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", SERIES.values(), ids=SERIES)
def test_arviz_gets_the_same_numbers(x):
    if len(x) > 1:  # ArviZ has no R-hat of one chain
        assert r_hat(x) == pytest.approx(arviz.rhat(x), rel=1e-9)
    assert ess_bulk(x) == pytest.approx(arviz.ess(x, method="bulk"), rel=1e-9)
    assert ess_tail(x) == pytest.approx(arviz.ess(x, method="tail", prob=(0.05, 0.95)), rel=1e-9)


def test_a_single_chain_is_held_against_itself():
    x = wander(1, 400, 0.2)
    assert r_hat(x) < 1.02
    assert r_hat(x + np.linspace(0, 5, 400)) > 1.5


def test_a_quantity_that_never_changes():
    assert r_hat(np.ones((3, 10))) == 1
    assert ess_bulk(np.ones((3, 10))) == ess_tail(np.ones((3, 10))) == 30
    assert r_hat(np.repeat([[1.0], [2.0]], 10, axis=1)) == np.inf


@pytest.mark.parametrize("x", [np.zeros((2, 3)), np.zeros((2, 1)), np.full((2, 8), np.nan)])
def test_too_little_to_say(x):
    assert np.isnan(r_hat(x))


def test_effective_draws_of_a_process_with_known_memory():
    """Of an autoregressive process (1 − a) / (1 + a) of the draws count."""
    for memory in (0.0, 0.5, 0.8):
        assert ess_bulk(wander(4, 5000, memory)) == pytest.approx(20_000 * (1 - memory) / (1 + memory), rel=0.1)


# --- the verdict --------------------------------------------------------------------------------------------------------


def diagnose(trace, burn_in, overlap, counts=None, jumps=None):
    kept = Round(burn_in, trace["purity"].shape[1])
    return bayescase.sampling.diagnostics.diagnose(trace, kept, overlap, counts=counts, jumps=jumps)


def traced(x):
    return dict.fromkeys(QUANTITIES, x) | dict.fromkeys(RATES, np.full_like(x, 0.25))


def test_a_good_verdict():
    found = diagnose(traced(wander(4, 400, 0.5)), 100, np.array([0.95, 1.0, 0.99, 0.9]))
    assert found.converged
    assert found.sound
    said = r"Good: all 4 chains found the same clusters, and probabilities are exact to about \d percentage points\."
    assert re.fullmatch(said, found.verdict)
    assert found.details.endswith("All quantities have that.")
    assert found.advice == ""
    assert found.remedies == ()
    assert (found.n_chains, found.n_agreeing, found.n_sweeps) == (4, 4, 300)
    assert found.rates == {"cells_moved": 0.25, "cases_relabelled": 0.25, "prototypes_changed": 0.25}
    assert found.quantities["purity"].r_hat == found.quantities["purity"].r_hat_all < 1.05


def test_probabilities_are_as_exact_as_the_verdict_says():
    """The standard error of a share of one half, by the fewest effective draws."""
    found = diagnose(traced(wander(4, 400, 0.5)), 0, np.ones(4))
    least = min(of.ess_bulk for of in found.quantities.values())
    assert f"exact to about {50 / np.sqrt(least):.0f} percentage points" in found.verdict
    surest = diagnose(traced(wander(4, 4000, 0.0)), 0, np.ones(4))
    assert "exact to about 1 percentage point." in surest.verdict


def test_the_burn_in_is_left_out():
    x = wander(2, 300, 0.0)
    x[:, :100] += 50
    assert diagnose(traced(x), 100, np.ones(2)).converged
    assert not diagnose(traced(x), 50, np.ones(2)).converged


def test_chains_that_are_too_short():
    slow = diagnose(traced(wander(4, 200, 0.99)), 0, np.ones(4))
    assert not slow.converged
    assert not slow.sound
    assert slow.verdict == "All 4 chains found the same clusters, but they are too short to say how sure that is."
    assert re.search(r"The \w+[\w ]* has \d+ effective draws, and R-hat of the ", slow.details)
    assert slow.advice == "Run longer with n_iter=400."
    for n in (1, 3):
        none = diagnose(traced(wander(4, 20, 0.0)), 20 - n, np.ones(4))
        assert not none.converged
        assert none.verdict == f"Too short to judge: only {n} {'sweeps were' if n > 1 else 'sweep was'} kept."
        assert none.details == ""
        assert np.isnan(none.quantities["purity"].r_hat)


def test_details_name_no_criterion_that_is_met():
    few = diagnose(traced(wander(4, 20, 0.0)), 0, np.ones(4))  # R-hat is fine, but 80 draws are few
    assert few.quantities["entropy"].r_hat < 1.05
    assert not few.converged
    assert "R-hat of the" not in few.details
    assert re.search(r"has \d+ effective draws\.$", few.details)
    many = diagnose(traced(wander(16, 300, 0.93)), 0, np.ones(16))  # of many chains R-hat asks for more draws
    assert many.quantities["entropy"].ess_bulk > 100
    assert "R-hat of the " in many.details
    assert " has " not in many.details


@pytest.mark.parametrize("r_hat", [1.050001, 1.0549, 1.06])
def test_a_limit_that_is_missed_by_little_is_seen_to_be_missed(r_hat):
    """Not: R-hat is 1.05, at most 1.05 is wanted."""
    of = Quantity(0.0, 1.0, r_hat, r_hat, 400.0, 400.0)
    found = Found(dict.fromkeys(QUANTITIES, of), np.zeros(2), np.ones(2, bool), 100)
    said = float(re.search(r"R-hat of the [\w ]+ is ([\d.]+)\.$", details(found))[1])
    assert 1.05 < said == pytest.approx(r_hat, abs=0.01)


def test_a_fit_that_is_short_on_one_trace_is_not_shouted_at(easy):
    trace = traced(wander(4, 400, 0.3)) | {"purity": wander(4, 400, 0.93)}
    found = diagnose(trace, 0, np.ones(4))
    assert found.sound
    assert not found.converged
    assert re.fullmatch(
        r"All 4 chains found the same clusters. Probabilities are exact to about \d percentage points only.", found.verdict
    )
    assert "The purity has " in found.details
    assert found.advice == "For more exact ones run longer with n_iter=800."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianCaseModel(2, n_iter=100, moves="none", random_state=0).fit(easy)
    assert model.diagnostics_.sound
    assert not model.diagnostics_.converged


def test_chains_in_different_clusters():
    x = wander(4, 400, 0.3) - np.array([[0], [40], [0], [160]])
    found = diagnose(traced(x), 0, np.array([1.0, 0.5, 0.95, 0.3]), Counts(3, 4, 14, 120))
    assert not found.converged
    assert not found.sound
    assert found.n_agreeing == 2
    assert found.verdict == (
        "The 4 chains found different clusters: 2 of 4 found those shown, and what the other 2 found is less probable. 3 of 4 "
        "clusters are the same in all chains; 14 of 120 cases could as well be in another one. Longer runs seldom bring such "
        "chains together."
    )
    assert found.advice == (
        "Try more chains with n_chains=8, try another n_clusters, or see where they differ by explain_differences."
    )
    could = diagnose(traced(x), 0, np.array([1.0, 0.5, 0.95, 0.3]), jumps=Setting("moves", "jumps"))
    assert could.advice.startswith("Let chains jump between what they found with moves='jumps', try another n_clusters, or ")
    assert found.details.endswith(
        "All quantities have that. The log joint of the chains that found other clusters is lower by 40 to 160."
    )
    assert found.quantities["log_joint"].r_hat < 1.05 < 1.5 < found.quantities["log_joint"].r_hat_all
    assert found.quantities["log_joint"].mean == pytest.approx(x[[0, 2]].mean())
    alone = diagnose(traced(x), 0, np.array([1.0, 0.5, 0.89, 0.3]))
    assert alone.n_agreeing == 1
    assert ": shown are those of the best one, and what the other 3 found is as probable or less." in alone.verdict
    assert "clusters are the same" not in alone.verdict  # that was not asked


def test_chains_that_mix_but_whose_clusters_do_not_match():
    found = diagnose(traced(wander(4, 400, 0.2)), 0, np.array([1.0, 0.95, 0.8, 0.95]))
    assert not found.converged
    assert found.verdict.startswith("The data hardly tell some clusters apart: every chain goes to and fro ")
    assert found.verdict.endswith("and 3 of 4 found those shown.")
    assert found.advice.startswith("Try fewer clusters with a smaller n_clusters, keep more draws with a smaller thin, or ")


@pytest.mark.parametrize("which", ["apart", "apart and short", "mixing"])
def test_chains_that_differ_in_shares_only_are_not_said_to_differ_in_clusters(which):
    x, overlap = VERDICTS[which]
    said = diagnose(traced(x), 0, overlap, counts=Counts(2, 2, 0, 12)).verdict
    assert not re.search("different clusters|clusters apart|could as well", said)
    assert re.search("the same main cluster of every case, but other shares of it: |how much of a case belongs to which", said)
    assert diagnose(traced(x), 0, overlap, counts=Counts(1, 2, 3, 12)).verdict != said


def test_chains_in_different_clusters_that_are_too_short_as_well():
    found = diagnose(traced(wander(3, 60, 0.95)), 0, np.array([1.0, 0.95, 0.5]))
    assert "2 of 3 found those shown, and what the other one found is " in found.verdict
    assert found.verdict.endswith("The chains are also too short to say how sure that is.")
    assert found.advice.startswith("Run longer with n_iter=120, try more chains with n_chains=6, or ")


def test_one_chain_says_what_it_cannot_show():
    found = diagnose(traced(wander(1, 600, 0.2)), 0, np.ones(1))
    assert found.converged
    assert found.verdict.startswith("Good, as far as one chain can tell: probabilities are exact to about ")
    assert found.verdict.endswith("More chains would show whether others find the same.")
    short = diagnose(traced(wander(1, 60, 0.9)), 0, np.ones(1)).verdict
    assert short.startswith("One chain found these clusters, but it is too short to say how sure that is.")


VERDICTS = {
    "good": (wander(4, 400, 0.5), np.ones(4)),
    "sound": (wander(4, 400, 0.9), np.ones(4)),
    "short": (wander(4, 200, 0.99), np.ones(4)),
    "apart": (wander(4, 400, 0.3) - 40 * np.arange(4)[:, None], np.array([1, 0.5, 0.5, 0.3])),
    "apart and short": (wander(3, 60, 0.95), np.array([1.0, 0.95, 0.5])),
    "mixing": (wander(4, 400, 0.2), np.array([1.0, 0.95, 0.8, 0.95])),
}


@pytest.mark.parametrize(("x", "overlap"), VERDICTS.values(), ids=VERDICTS)
def test_advice_names_parameters_and_options_that_exist(x, overlap):
    params = BayesianCaseModel().get_params()
    found = diagnose(traced(x), 0, overlap)
    for way in found.remedies:
        assert all(setting.parameter in params or hasattr(BayesianCaseModel, setting.parameter) for setting in way.settings)
    options = {name for command in main.commands.values() for param in command.params for name in param.opts}
    for word in re.findall(r"(?<!\w)--?[a-z-]+", advise(found.remedies, as_option)):
        assert word in options
    assert bool(found.remedies) != found.converged
    assert found.sound or not found.converged


@pytest.mark.parametrize(("x", "overlap"), VERDICTS.values(), ids=VERDICTS)
def test_what_people_read_first_has_no_terms_of_the_trade(x, overlap):
    found = diagnose(traced(x), 0, overlap, Counts(0, 4, 1, 120))
    for said in (found, at_the_cap(found, 20), stopped_early(found, 30, 1000)):
        first = f"{said.verdict} {said.advice}"
        assert not re.search(r"R-hat|ESS|effective|log joint|entropy|purity|burn-in|None of 1 ", first)
        assert all(sentence[0].isupper() or sentence[0].isdigit() for sentence in re.split(r"(?<=\.) ", first.strip()))


def test_what_differs_is_counted_in_words():
    assert what_differs(Counts(0, 4, 1, 120)) == (
        "None of 4 clusters is the same in all chains; 1 of 120 cases could as well be in another one."
    )
    assert what_differs(Counts(1, 1, 0, 10)) == ""
    assert what_differs(Counts(0, 1, 3, 10)).startswith("The only cluster is not the same in all chains; 3 of 10 cases could")
    assert what_differs(None) == ""


def test_a_run_at_its_cap_or_stopped_says_so_first():
    good = diagnose(traced(wander(4, 400, 0.5)), 100, np.ones(4))
    assert at_the_cap(good, 20).verdict.startswith("All 20 clusters that were allowed are in use, so there may be more")
    assert "Otherwise good: all 4 chains" in at_the_cap(good, 20).verdict
    assert stopped_early(good, 30, 1000).verdict == f"The run was stopped after 30 of 1,000 sweeps. {good.verdict}"


def test_json_has_the_advice_in_the_words_of_a_front_end():
    found = diagnose(traced(wander(4, 200, 0.99)), 0, np.ones(4))
    assert found.to_json()["advice"] == found.advice
    assert found.to_json(as_option)["advice"] == "Run longer with --iterations 400."
    assert "Run longer with --iterations 400." in found.render(as_option)
    assert json.loads(json.dumps(found.to_json()))["quantities"].keys() == found.quantities.keys()


def test_a_run_that_chooses_its_length_is_made_longer_by_its_limit(easy):
    settings = {"n_iter": "auto", "max_iter": 500, "n_chains": 4, "random_state": 0}
    fitted = BayesianCaseModel(2, **settings).fit(easy).fitted_
    trace = {name: wander(*values.shape, 0.999) for name, values in fitted.trace.items()}
    longer = dataclasses.replace(fitted, trace=trace).diagnostics
    assert longer.remedies[0].settings == (Setting("max_iter", 1000),)
    stopped = dataclasses.replace(fitted, trace=trace, interrupted=True).diagnostics
    assert stopped.remedies[0].settings == (Setting("max_iter", 500),)


def test_settled_is_asked_of_each_chain():
    apart = wander(3, 400, 0.2) + 100 * np.arange(3)[:, None]
    assert is_settled(traced(apart), Round(0, 400))
    apart[1] += np.linspace(0, 3, 400)
    assert not is_settled(traced(apart), Round(0, 400))


def test_the_table(fitted):
    shown = str(fitted.diagnostics_)
    lines = shown.splitlines()
    assert lines[0] == fitted.diagnostics_.verdict
    for words in ("R-hat", "ESS bulk", "log joint", "purity", "subspace size", "entropy", "cells moved"):
        assert words in shown
    assert max(map(len, [line for line in lines[2:] if not line.startswith("Wanted")])) < 110
    with pytest.raises(AttributeError):
        fitted.diagnostics_.converged = True


# --- a fit ----------------------------------------------------------------------------------------------------------------


def test_diagnostics_of_a_fit_are_those_of_its_trace(fitted):
    assert tuple(fitted.fitted_.trace) == TRACED
    assert fitted.n_iter_ == 120
    agree = fitted.chain_overlap_ >= 0.9
    for name in QUANTITIES:
        kept, of = fitted.fitted_.trace[name][:, 60:], fitted.diagnostics_.quantities[name]
        assert of.r_hat_all == r_hat(kept)
        assert of.ess_bulk == ess_bulk(kept[agree])
        assert of.mean == pytest.approx(kept[agree].mean())
    for name, rate in fitted.diagnostics_.rates.items():
        assert 0 <= rate <= 1
        assert rate == pytest.approx(fitted.fitted_.trace[name][agree][:, 60:].mean())


@pytest.fixture(scope="module")
def easy(planted):
    return planted(N=60, P=8, V=4, S=2, seed=3, noise=0.1)[0]


def test_a_fit_that_converged_does_not_warn(easy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesianCaseModel(2, **CURED).fit(easy)
    assert model.diagnostics_.converged


def test_a_fit_that_has_not_converged_warns_once_with_what_to_do(easy):
    with pytest.warns(ConvergenceWarning) as record:
        model = BayesianCaseModel(2, n_iter=6, random_state=0).fit(easy)
    assert len(record) == 1
    assert str(record[0].message) == "Too short to judge: only 3 sweeps were kept. " + model.diagnostics_.advice
    assert "Run longer with n_iter=12." in str(record[0].message)
    assert record[0].filename == __file__
    assert not model.diagnostics_.converged


def test_a_fit_stopped_by_hand_is_not_scolded_twice(easy):
    model = BayesianCaseModel(2, random_state=0)
    with pytest.warns(UserWarning, match="Stopped after 9") as record:
        model.fit(easy, callback=lambda report: report.sweep == 9)
    assert len(record) == 1
    assert not model.diagnostics_.converged
    assert model.diagnostics_.verdict.startswith("The run was stopped after 9 of 1,000 sweeps.")
    assert model.n_iter_ == 9


@pytest.mark.parametrize(
    "settings", [{}, {"n_clusters": 1}, {"alpha": 0}, {"n_chains": 1}, {"burn_in": 0}, {"sampler": "collapsed"}]
)
def test_diagnostics_come_back_from_a_file(easy, settings, same, tmp_path):
    model = BayesianCaseModel(**{"n_clusters": 2, "n_iter": 30, "burn_in": 7, "random_state": 0} | settings).fit(easy)
    model.save(tmp_path / "model")
    again = BayesianCaseModel.load(tmp_path / "model")
    same(model, again)
    assert str(again.diagnostics_) == str(model.diagnostics_)


# --- starts ---------------------------------------------------------------------------------------------------------------


def test_mixed_starts_are_those_of_a_list(easy, same):
    mixed = BayesianCaseModel(2, init="mixed", n_chains=5, n_iter=20, random_state=0).fit(easy)
    named = clone(mixed).set_params(init=["seeded", "cases", "seeded", "seeded", "seeded"]).fit(easy)
    same(mixed, named)
    for init, chains in (("seeded", [0, 2, 3, 4]), ("cases", [1])):
        all_alike = clone(mixed).set_params(init=init).fit(easy)
        equal = [c for c in range(5) if np.array_equal(all_alike.log_joint_[c], mixed.log_joint_[c])]
        assert equal == chains


@pytest.mark.parametrize(
    "init", [["cells", "cases"], ("cells", "cases"), np.array(["cells", "cases"])], ids=["list", "tuple", "array"]
)
def test_a_list_of_starts_survives_clone_and_file(easy, init, same, tmp_path):
    model = clone(BayesianCaseModel(2, init=init, n_chains=2, n_iter=20, random_state=0)).fit(easy)
    model.save(tmp_path / "model")
    same(model, BayesianCaseModel.load(tmp_path / "model").fit(easy))


def test_starts_from_cells_are_from_cases_at_alpha_zero(easy, same):
    settings = {"alpha": 0, "n_chains": 2, "n_iter": 20, "random_state": 0}
    same(
        BayesianCaseModel(2, init=["cells", "seeded"], **settings).fit(easy),
        BayesianCaseModel(2, init=["cases", "seeded"], **settings).fit(easy),
    )


def test_more_chains_than_cases_from_labels():
    x = np.array([[0, 1], [1, 0], [0, 0]])
    assert BayesianCaseModel(2, n_chains=5, n_iter=8, random_state=0).fit(x, init=[0, 1, -1]).log_joint_.shape == (5, 8)


# --- n_iter="auto" --------------------------------------------------------------------------------------------------------


def test_auto_ends_when_the_verdict_is_good(easy):
    seen = []
    model = BayesianCaseModel(2, n_iter="auto", keep_draws=True, random_state=0).fit(easy, callback=seen.append)
    assert model.diagnostics_.converged
    assert model.n_iter_ == len(seen) in (250, 500, 1000)
    assert model.diagnostics_.n_sweeps == model.n_iter_ // 2
    kept = range(model.n_iter_ // 2, model.n_iter_, 5)
    assert np.array_equal(model.draws_.log_joint, model.log_joint_[:, kept])
    assert [report.n_iter for report in seen[:250]] == [250] * 250


def bad_until(monkeypatch, rounds, apart=False):
    """Make the verdict bad for so many rounds: too short, or settled in different clusters."""
    asked = []

    def stern(trace, of, overlap):
        asked.append(of)
        found = diagnose(traced(wander(2, 400, 0.0)), 0, np.array([1.0, 0.5 if apart else 1.0]))
        return found if apart else dataclasses.replace(found, converged=len(asked) > rounds)

    monkeypatch.setattr(bayescase.sampling.run, "diagnose", stern)
    monkeypatch.setattr(bayescase.sampling.run, "is_settled", lambda trace, of: len(asked) > rounds)
    return asked


@pytest.mark.parametrize("max_iter", [1000, 1100, 1999])
def test_auto_doubles_and_judges_the_second_half(easy, max_iter, monkeypatch):
    asked = bad_until(monkeypatch, 99)
    model = BayesianCaseModel(2, n_iter="auto", max_iter=max_iter, n_chains=2, keep_draws=True, random_state=0).fit(easy)
    assert model.n_iter_ == max_iter
    ends = [max_iter // 4, max_iter // 2]  # the verdict on the last round changes nothing
    assert asked == [(end // 2, end) for end in ends]
    assert np.array_equal(model.draws_.log_joint, model.log_joint_[:, max_iter // 2 :: 5])


def test_auto_goes_on_while_the_verdict_is_bad(easy, monkeypatch):
    bad_until(monkeypatch, 1)
    assert BayesianCaseModel(2, n_iter="auto", n_chains=2, random_state=0).fit(easy).n_iter_ == 500


@pytest.mark.parametrize(("unsettled", "n_iter"), [(0, 500), (1, 1000)])
def test_auto_gives_up_on_chains_that_stay_apart(easy, unsettled, n_iter, monkeypatch):
    bad_until(monkeypatch, unsettled, apart=True)
    assert BayesianCaseModel(2, n_iter="auto", n_chains=2, random_state=0).fit(easy).n_iter_ == n_iter


@pytest.mark.parametrize(("stop", "first", "end"), [(251, 125, 250), (300, 125, 250), (380, 250, 380)])
def test_auto_stopped_early_in_a_round_keeps_the_round_before(easy, stop, first, end, monkeypatch, same, tmp_path):
    bad_until(monkeypatch, 99)
    model = BayesianCaseModel(2, n_iter="auto", n_chains=2, keep_draws=True, random_state=0)
    with pytest.warns(UserWarning, match=rf"Stopped after {stop} of at most 8000 sweeps; .* {len(range(first, end, 5))} kept"):
        model.fit(easy, callback=lambda report: report.sweep == stop)
    assert model.n_iter_ == stop
    assert model.diagnostics_.n_sweeps == end - first
    assert np.array_equal(model.draws_.log_joint, model.log_joint_[:, first:end:5])
    assert list(model.to_arviz()["posterior"]["draw"].values) == list(range(first, end, 5))
    model.save(tmp_path / "model")
    same(model, BayesianCaseModel.load(tmp_path / "model"))


@pytest.mark.parametrize("max_iter", [1, 2, 7, 249, 250, 499])
def test_a_small_budget_is_one_round(easy, max_iter):
    model = BayesianCaseModel(2, n_iter="auto", max_iter=max_iter, n_chains=2, random_state=0).fit(easy)
    fixed = clone(model).set_params(n_iter=max_iter).fit(easy)
    assert model.n_iter_ == max_iter
    assert np.array_equal(model.log_joint_, fixed.log_joint_)
    assert np.array_equal(model.memberships_, fixed.memberships_)


# --- ArviZ ----------------------------------------------------------------------------------------------------------------


def test_to_arviz_has_every_sweep_after_the_burn_in(easy):
    model = BayesianCaseModel(2, n_iter=50, burn_in=10, random_state=0).fit({f"f{j}": easy[:, j] for j in range(8)})
    found = model.to_arviz()
    assert type(found).__name__ == ("InferenceData" if arviz.__version__ < "1" else "DataTree")
    posterior, stats = found["posterior"], found["sample_stats"]
    assert list(posterior["draw"].values) == list(range(10, 50))
    assert set(posterior.data_vars) == set(QUANTITIES)
    assert set(stats.data_vars) == {"lp", *RATES}
    assert np.array_equal(stats["lp"].values, model.log_joint_[:, 10:])
    assert posterior.attrs["inference_library"] == "bayescase"
    if model.diagnostics_.n_agreeing == 4:
        assert float(arviz.rhat(found)["purity"]) == pytest.approx(model.diagnostics_.quantities["purity"].r_hat)
    assert set(arviz.summary(found).index) == set(QUANTITIES)


def test_to_arviz_with_kept_draws(fitted, mixed, tmp_path):
    fitted.save(tmp_path / "model")
    for model in (fitted, BayesianCaseModel.load(tmp_path / "model").set_params(thin=1)):
        posterior = model.to_arviz()["posterior"]
        assert list(posterior["draw"].values) == list(range(60, 120, 5))
        assert posterior["prototype"].dims == ("chain", "draw", "cluster")
        assert posterior["subspace"].dims == ("chain", "draw", "cluster", "feature")
        assert list(posterior["feature"].values) == list(mixed[0])
        assert np.array_equal(posterior["prototype"].values, fitted.draws_.p)
        assert np.array_equal(posterior["subspace"].values, fitted.draws_.omega)
        assert np.array_equal(posterior["log_joint"].values, fitted.draws_.log_joint)


@pytest.mark.parametrize(("version", "kind"), [("0.23.4", "InferenceData"), ("1.3.0", "DataTree")])
def test_both_generations_of_arviz(fitted, version, kind, monkeypatch):
    """1.x still has the name InferenceData, but it only warns; so the version must decide."""

    class InferenceData(dict):
        pass

    stand_in = types.SimpleNamespace(__version__=version, InferenceData=InferenceData)
    monkeypatch.setitem(sys.modules, "arviz", stand_in)
    found = fitted.to_arviz()
    assert type(found).__name__ == kind
    assert list(found) == ["posterior", "sample_stats"]
    assert found["posterior"]["purity"].shape == (3, 12)


def test_without_arviz_it_says_how_to_get_it(fitted, monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name == "arviz":
            raise ImportError("No module named 'arviz'")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"to_arviz needs ArviZ: pip install 'bayescase\[arviz\]'"):
        fitted.to_arviz()


def test_to_arviz_before_the_fit():
    with pytest.raises(NotFittedError):
        BayesianCaseModel().to_arviz()
