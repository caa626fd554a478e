"""Names, colours and places of labels in figures."""

import numpy as np
import pytest

from backcast.report import style


@pytest.mark.parametrize(
    ("heights", "gap", "expected"),
    [
        ([0.5], 0.1, [0.5]),
        ([0.2, 0.8], 0.1, [0.2, 0.8]),
        ([0.5, 0.5], 0.1, [0.45, 0.55]),
        ([0.0, 0.0, 0.9], 0.2, [0.0, 0.2, 0.9]),
        ([1.0, 1.0], 0.2, [0.8, 1.0]),
        ([0.3, 0.3, 0.3], 0.9, [0.0, 0.5, 1.0]),
    ],
)
def test_labels_move_no_further_than_they_must(heights, gap, expected):
    np.testing.assert_allclose(style.spread(np.array(heights), gap), expected, atol=1e-12)


def test_names_that_are_not_the_papers_are_shown_as_they_are():
    assert style.world_title("FrozenLake-v1") == "FrozenLake-v1"
    assert style.agent_label("sampled-backward", []) == "sampled backward"
    assert style.agent_label("pure:forward@current,alpha_model=0.1", []) == "forward from s′, αₘ = 0.1"
    assert style.colour("sampled-backward") in style.OTHERS


def test_every_kind_of_chain_has_a_title_and_levels():
    assert style.levels("chain-500-50-6-branches-2") == (500, 50, 6)
    title = "Channelling: 500 → 50 → 6 states, two branches of opposite sign"
    assert style.world_title("chain-500-50-6-branches-2") == title
    assert style.world_title("chain-3-9-branches-3") == "Broadcasting: 3 → 9 states, 3 branches of alternating sign"
    assert style.levels("chain-of-command") == ()
    assert style.world_title("chain-of-command") == "chain-of-command"
    assert style.stacked_title("chain-500-50-6-branches-2", 20) == (
        "Channelling:\n500 → 50 → 6 states,\ntwo branches of\nopposite sign"
    )


@pytest.mark.parametrize(
    ("agent", "among", "words"),
    [
        ("backward@previous,model=counts,forget=0.05,importance=true", [],
         "backward from s, counts, forget = 0.05, importance weights"),
        ("softmax, only what was seen", [], "softmax, only what was seen"),
        ("counts, sample=4", [], "counts, sample = 4"),
        ("sweeping,variant=moore-atkeson", [], "sweeping, Moore and Atkeson"),
        ("backward,lam=0.3,lam_by=td", ["backward,model=counts"], "backward, λ = 0.3, λ-model by TD"),
        ("backward", ["backward", "backward,model=counts"], "backward, softmax"),
        ("backward", ["backward", "forward,model=counts"], "backward"),
        ("q-lambda", [], "Q(λ)"),
    ],
)  # fmt: skip
def test_agents_in_words(agent, among, words):
    assert style.agent_label(agent, among) == words
