"""What is too large is refused before it is made, with the number, the bound and how to raise it."""

import gymnasium
import pytest

import backcast as bc
from backcast.core.errors import LINE, LINES, InputError
from backcast.core.limits import LIMITS, limit, refuse_many

HUGE = 10**5000  # of more digits than Python writes


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: bc.worlds.random_walk(10**7), "n: 10,000,002 states, expected at most 10,000,000"),
        (lambda: bc.worlds.random_walk(10**6), "n: 200,000,000 transitions, expected at most 50,000,000"),
        (lambda: bc.worlds.boyan(10**9), "n: 1,000,000,000 states"),
        (lambda: bc.worlds.chain((10**5, 10**5)), "levels: 10,000,000,000 transitions"),
        (lambda: bc.worlds.chain((10**5, 10**5), seed=None), "levels: 10,000,000,000 transitions"),
        (lambda: bc.worlds.noisy_tv(10**4, 10), "signals × channels: 10,000,000,000 transitions"),
        (lambda: bc.worlds.maze("S" + "." * 10**7 + "G"), "text: 10,000,002 states"),
        (lambda: bc.run(bc.worlds.maze(), bc.agent("q"), 10**7, 20), "episodes × seeds: 200,000,000 episodes"),
        (lambda: bc.run(bc.worlds.maze(), bc.agent("q"), 1, 10**15), "episodes × seeds: 1,000,000,000,000,000"),
        (
            lambda: bc.train(gymnasium.make("backcast/Maze-v0"), bc.agent("q"), 10**9, 0),
            "episodes × seeds: 1,000,000,000 episodes",
        ),
    ],
)
def test_what_is_too_large_is_refused_before_it_is_made(make, words):
    with pytest.raises(InputError, match=words) as refused:
        make()
    assert "in the environment raises the limit" in str(refused.value)


def test_the_environment_raises_a_limit(monkeypatch):
    monkeypatch.setenv("BACKCAST_MOST_STATES", "11000000")
    assert limit("states") == 11_000_000
    assert bc.worlds.boyan(10_500_000).name == "boyan-10500000"
    for wrong in ("many", "-1", "1e9", "", "9" * 5000):
        monkeypatch.setenv("BACKCAST_MOST_STATES", wrong)
        with pytest.raises(InputError, match=r"BACKCAST_MOST_STATES: .* expected a whole number, such as 10000000"):
            limit("states")


@pytest.mark.parametrize("what", LIMITS)
def test_a_limit_is_itself_allowed(what):
    refuse_many("here", what, LIMITS[what])
    with pytest.raises(InputError, match=f"BACKCAST_MOST_{what.upper()}={LIMITS[what] + 1} in the environment"):
        refuse_many("here", what, LIMITS[what] + 1)


@pytest.mark.parametrize(
    "refused",
    [
        lambda: bc.worlds.chain((3, 2), seed=-HUGE),
        lambda: bc.worlds.maze(slip=HUGE),
        lambda: bc.worlds.maze("S" * 10**6),
        lambda: bc.agent("b" * 10**6),
        lambda: bc.agent("q", alpha="0" * 10**6),
        lambda: bc.FiniteMDP([[[1.0]]], [[0.0]], "9" * 10**6, [1.0]),
    ],
)
def test_no_message_is_long_whatever_was_given(refused):
    with pytest.raises(InputError) as error:
        refused()
    assert len(str(error.value)) < 2000


def test_a_message_of_many_lines_is_cut():
    message = str(InputError("\n".join("x" * 10_000 for _ in range(1000))))
    assert message.endswith(f"and {1000 - LINES} lines more")
    assert len(message.splitlines()) == LINES + 1
    assert max(map(len, message.splitlines())) < LINE + 50
