"""The paper's story in five panels, and one on the planner that chooses: a configuration and a sentence for each.

Sentences report results, not expectations: docs/reproduction.md and docs/findings.md explain where the paper's claims
depend on models and metrics. A test recomputes the numbers in `measured`.
"""

from typing import Any, Literal, NamedTuple


class Preset(NamedTuple):
    """A panel of the story.

    Attributes:
        name: name in addresses.
        title: title, two or three words.
        sentence: the main point.
        look: what to look at on the boards.
        config: the configuration, as `LabConfig` reads it, with a typical seed.
        at: the tick to open at.
        speed: ticks per second, so that the run takes at most a minute, or a moment can be watched.
        ahead: the side with the smaller error or fewer steps.
        measured: means over all episodes of 100 seeds, and the interval of the paired difference.
        baseline: an agent that `measured` mentions and neither board shows; the page offers to put it on the left.
    """

    name: str
    title: str
    sentence: str
    look: str
    config: dict[str, Any]
    at: int
    speed: float
    ahead: Literal["left", "right"]
    measured: str
    baseline: dict[str, Any] | None = None

    def as_dict(self) -> dict[str, Any]:
        """Plain data for the page."""
        return self._asdict()


def _pure(kind: str) -> dict[str, Any]:
    return {"kind": kind, "learn": False}


def _counted(kind: str, frame: str, **rates: float) -> dict[str, Any]:
    return {"kind": kind, "frame": frame, "model": "counts", **rates}


_NOISY = {"alpha": 0.1, "alpha_model": 0.5}  # the paper's step sizes in its stochastic mazes
_Q = {"kind": "q", "alpha": 0.1}

PRESETS = (
    Preset(
        name="channelling",
        title="Channelling",
        sentence="If many states lead to few, backward planning pays, because it corrects every state that leads to the"
        " one just entered, while forward planning corrects only the one just left.",
        look="the arrows: many to one on the left, one to many on the right",
        config={
            "world": {"kind": "chain", "levels": [24, 6, 2]},
            "left": _pure("true-forward"),
            "right": _pure("true-backward"),
            "seed": 15,
            "episodes": 100,
        },
        at=0,
        speed=6,
        ahead="right",
        measured="mean error 5.09 against 4.57, 100 seeds: difference 0.53 [0.43, 0.62], both with the true model;"
        " with learning and counted models it is a tie",
    ),
    Preset(
        name="broadcasting",
        title="Broadcasting",
        sentence="If few states lead to many, forward planning pays, because it averages over all possible successors,"
        " while backward planning follows the most recent one.",
        look="level 2, which settles soon on the left and moves at every arrival on the right",
        config={
            "world": {"kind": "chain", "levels": [2, 6, 24]},
            "left": _pure("true-forward"),
            "right": _pure("true-backward"),
            "seed": 15,
            "episodes": 100,
        },
        at=0,
        speed=6,
        ahead="left",
        measured="mean error 1.59 against 2.71, 100 seeds: difference -1.12 [-1.29, -0.91], both with the true model;"
        " with learning and the paper's softmax models it is the other way round over the states that do not end"
        " an episode, 0.46 [0.33, 0.57], and -0.42 [-0.49, -0.35] over all",
    ),
    Preset(
        name="frame-of-reference",
        title="Frame of reference",
        sentence="Learning has just corrected s, so that backward planning from s′ corrects it once more, while"
        " backward planning from s passes the change one step further and finds the path sooner.",
        look="the goal, which is about to be reached for the first time. How many states change on the right, and how"
        " many on the left? Then raise the speed.",
        config={
            "world": {"kind": "maze"},
            "left": _counted("backward", "current"),
            "right": _counted("backward", "previous"),
            "seed": 4,
            "episodes": 30,
        },
        at=271,
        speed=2,
        ahead="right",
        measured="steps per episode 111.5 against 80.4, 100 seeds: difference 31.1 [26.8, 35.9]; contrary to"
        " the paper, forward planning gains from s, too: 96.4 against 84.2",
    ),
    Preset(
        name="stochastic-rewards",
        title="Stochastic rewards",
        sentence="If the goal pays only every other time, backward planning passes each new estimate on to all states"
        " that led there, and needs fewer steps than forward planning.",
        look="the steps per episode, which are fewer on the right. Averaged over all states, the values on the left are"
        " no worse, but only the states on the path count.",
        config={
            "world": {"kind": "maze", "reward_probability": 0.5},
            "left": _counted("forward", "current", **_NOISY),
            "right": _counted("backward", "previous", **_NOISY),
            "seed": 9,
            "episodes": 60,
        },
        at=1850,
        speed=50,
        ahead="right",
        measured="steps per episode 74.7 against 61.4, 100 seeds: difference 13.3 [10.5, 16.7]; Q-learning takes 88.7",
        baseline=_Q,
    ),
    Preset(
        name="stochastic-transitions",
        title="Stochastic transitions",
        sentence="If half of all moves slip, the paper's softmax model misleads forward planning, while backward"
        " planning from s with the same kind of model needs less than half as many steps.",
        look="the left agent's trajectory, and the steps of its episodes. A softmax leaves some probability to every"
        " state, so that each backward correction moves all of them a little.",
        config={
            "world": {"kind": "maze", "slip": 0.5},
            "left": {"kind": "forward", "frame": "current", **_NOISY},
            "right": {"kind": "backward", "frame": "previous", **_NOISY},
            "seed": 7,
            "episodes": 50,
        },
        at=400,
        speed=300,
        ahead="right",
        measured="steps per episode 253.5 against 105.8, 100 seeds: difference 148 [136, 160]; Q-learning takes 106.5,"
        " with counted models it is 75.5 against 76.2",
        baseline=_Q,
    ),
    Preset(
        name="choosing",
        title="Choosing",
        sentence="Neither direction is always right, so blend looks ahead from the state just left, looks back where"
        " that promises most, and stops where a real step brings more.",
        look="the sentence on the right, which says what each state promised. The goal is about to be reached for the"
        " first time. The change travels back until it is worth less than a real step. Then raise the speed.",
        config={
            "world": {"kind": "maze", "slip": 0.2},
            "left": _counted("backward", "previous", **_NOISY),
            "right": {"kind": "blend"},
            "seed": 18,
            "episodes": 40,
        },
        at=284,
        speed=2,
        ahead="right",
        measured="steps per episode 63.1 against 44.9, 100 seeds: difference 18.2 [16.4, 20.4]; with 8.8 against 3.8"
        " value updates for each step; prioritized sweeping with small backups takes 43.9 steps, with 20.4 each",
    ),
)
