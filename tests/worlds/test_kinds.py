"""The registry of kinds of worlds: what follows from a function's signature, and what is refused."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import numpy as np
import pytest

import backcast as bc
from backcast.core.setting_types import Bounds, setting_of
from backcast.worlds.kinds import WORLDS, Picture, keys_of, picture_of, recipe_of, register_world
from backcast.worlds.maze import PAPER_MAZE

Probability = Annotated[float, Bounds(0, 1, "a probability")]


@pytest.mark.parametrize(
    ("annotation", "of", "allowed"),
    [
        (int, int, "a whole number"),
        (float | None, float, "a number"),
        (Annotated[int, Bounds(1)] | None, int, "a whole number, 1 or more"),
        (Annotated[int, Bounds(1, 9)], int, "a whole number from 1 to 9"),
        (Probability, float, "a probability in [0, 1]"),
        (Annotated[float, Bounds(2)], float, "a number 2 or more"),
        (bool, bool, "True or False"),
        (str, str, "text"),
        (Path, str, "text"),
        (Literal["a", "b"], Literal["a", "b"], '"a" or "b"'),
        (Sequence[int], tuple[int, ...], "a list, each a whole number"),
        (list[float], tuple[float, ...], "a list, each a number"),
        (tuple[int, str], tuple[int, str], "a list of a whole number and text"),
        (int | str, int | str, "a whole number or text"),
        (dict[str, int], dict[str, int], "a table"),
        (Any, Any, "anything"),
    ],
)
def test_a_key_has_the_type_of_the_argument(annotation, of, allowed):
    found = setting_of("key", annotation)
    assert (found.of, found.allowed) == (of, allowed) or get_args(found.of) == get_args(of)
    assert found.allowed == allowed


@pytest.mark.parametrize("annotation", [np.ndarray, np.random.Generator, Sequence[np.ndarray], bc.FiniteMDP])
def test_what_is_no_plain_data_is_no_key(annotation):
    assert setting_of("key", annotation) is None


def test_meanings_are_the_first_sentences_of_the_docstring():
    def make(n: int = 3, text: str = "", other: int = 1, discount: float = 0.9, size: int = 2):
        """A world.

        Args:
            n: states, the terminal
                ones included. They are numbered.
            text: what is
                drawn: by hand
            discount: γ.
            size: of it

        Returns:
            other: nothing.
        """

    keys = keys_of("made", make)
    assert list(keys) == ["n", "text", "other", "size", "discount"]
    assert [key.meaning for key in keys.values()] == [
        "states, the terminal ones included",
        "what is drawn: by hand",
        "",
        "of it",
        "γ",
    ]
    assert [key.default for key in keys.values()] == [3, "", 1, 2, 0.9]


def test_every_key_of_backcasts_own_kinds_has_a_meaning():
    for kind in WORLDS.values():
        if kind.is_builtin:
            assert kind.summary.endswith("."), kind.name
            assert all(key.meaning for key in kind.keys.values()), kind.name


def test_arguments_are_checked_before_the_function_is_called():
    called = []

    @register_world("checked")
    def checked(n: Annotated[int, Bounds(2, 9)] = 3, slip: Probability = 0.0, on: bool = True, more: Any = None):
        called.append((n, slip, on))
        return bc.worlds.maze("S.G")

    for given, sentence in [
        ({"n": 1}, "n: 1 given, expected a whole number, 2 or more"),
        ({"n": 10}, "n: 10 given, expected at most 9"),
        ({"n": 2.5}, r"n: 2\.5 given, expected a whole number, 2 or more"),
        ({"slip": "0.5"}, r"slip: '0\.5' given, expected a probability in \[0, 1\]"),
        ({"slip": np.nan}, r"slip: nan given, expected a probability in \[0, 1\]"),
        ({"on": 1}, "on: 1 given, expected True or False"),
    ]:
        with pytest.raises(bc.InputError, match=sentence):
            checked(**given)
    assert called == []
    world = checked(np.int64(4), slip=1)
    assert called == [(4, 1.0, True)]
    assert recipe_of(world) == ("checked", {"n": 4, "slip": 1.0})
    assert recipe_of(checked(more=(marker := object()))) == ("checked", {"more": marker})


def other(**names):
    def make(n: int = 1):
        return bc.worlds.maze("S.G")

    make.__annotations__ = names
    return make


def test_what_cannot_be_a_kind_is_refused_when_it_is_registered():
    with pytest.raises(bc.InputError, match="world: 'maze' is one of Backcast's own; choose another name"):
        register_world("maze")(other())
    with pytest.raises(bc.InputError, match="world: 'label' is a key of every world; 'bad' needs another name for its"):
        register_world("bad")(lambda label="": None)

    def two(first: Path, second: Path):
        """Two files."""

    with pytest.raises(bc.InputError, match="world: 'two' has the files first and second, expected one at most"):
        register_world("two")(two)

    def array(start: np.ndarray):
        """Needs an array."""

    with pytest.raises(bc.InputError, match="world: 'array' needs start, which a study cannot give; annotate it as pl"):
        register_world("array")(array)
    assert not {"bad", "two", "array"} & WORLDS.keys()
    with pytest.raises(bc.InputError, match="world: 'none' made a NoneType, expected a World"):
        register_world("none")(lambda: None)()


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("chain", {}, Picture("Channelling: 500 → 50 → 5 states", (500, 50, 5))),
        ("chain", {"levels": [3, 3]}, Picture("Even levels: 3 → 3 states", (3, 3))),
        ("chain", {"levels": [6, 2], "branches": 2},
         Picture("Channelling: 6 → 2 states, two branches of opposite sign", (6, 2))),
        ("chain", {"levels": [3, 9], "branches": 3},
         Picture("Broadcasting: 3 → 9 states, 3 branches of alternating sign", (3, 9))),
        ("maze", {}, Picture("Maze, deterministic", cells=PAPER_MAZE)),
        ("maze", {"slip": 0.5, "reward_probability": 0.1},
         Picture("Maze, slips with probability 0.5, reward with probability 0.1", cells=PAPER_MAZE)),
        ("maze", {"later": [1000, "S.G"]}, Picture("Maze, changes after 1,000 steps", cells=PAPER_MAZE)),
        ("maze", {"text": "S.G"}, Picture()),
        ("blocking-maze", {}, Picture()),
        ("boyan", {}, Picture()),
        ("gymnasium", {"id": "FrozenLake-v1"}, Picture()),
    ],
)  # fmt: skip
def test_what_figures_show_of_a_world_follows_from_its_kind_and_keys(kind, given, expected):
    assert WORLDS[kind].picture(given) == expected


def test_a_world_that_was_made_is_shown_as_its_kind_says_unless_it_has_another_name():
    chain = bc.worlds.chain((6, 2), seed=None)
    assert picture_of(chain, "chain-6-2") == Picture("Channelling: 6 → 2 states", (6, 2))
    assert picture_of(chain, "mine") == Picture("mine", (6, 2))
    other = bc.worlds.from_mdp(bc.worlds.maze("S.G").mdp, name="maze-small")
    assert picture_of(other, "maze-small") == Picture("maze-small")


def test_what_others_registered_may_be_registered_again():
    for size in (3, 4):
        register_world("again")(lambda size=size: bc.worlds.boyan(size))
    assert WORLDS["again"].make().n_states == 4


def test_a_table_of_gymnasium_has_one_limit():
    """That of Backcast, or by Gymnasium's name for it; the environment's own if none is given."""
    by_id = [bc.worlds.from_gymnasium("FrozenLake-v1", **{name: 7}) for name in ("max_steps", "max_episode_steps")]
    assert [world.max_steps for world in by_id] == [7, 7]
    assert [recipe_of(world) for world in by_id] == [("gymnasium", {"id": "FrozenLake-v1", "max_steps": 7})] * 2
    other_start = bc.worlds.from_gymnasium("FrozenLake-v1", start=np.eye(16)[1], max_steps=7)
    assert (other_start.max_steps, recipe_of(other_start)) == (7, None)
    assert bc.worlds.from_gymnasium("FrozenLake-v1").max_steps == 100
    with pytest.raises(bc.InputError, match="max_steps: 0 given, expected a whole number, 1 or more"):
        bc.worlds.from_gymnasium("FrozenLake-v1", max_steps=0)
