"""What docs/blend.md says of need: gain × need in place of the gain as the priority of a planned update.

    python docs/measurements/need.py directions    # which sequences come out
    python docs/measurements/need.py compare       # errors and steps, with and without

Mattar and Daw (2018): an update is worth what it gains in a state, times how soon the agent will be there. Need is the
discounted number of visits from now on, Σ_t γ^t P(s_t = x). It is estimated by roll-outs of the counted model under π,
from the state that the agent is in; where an episode ends they go on from where the last one began. All else is as in
`blend` without a prior, the gate included.
"""

import argparse
from typing import Any, NamedTuple

import numpy as np
from blend import compare, directions

import backcast as bc
from backcast.agents.blending import blend_planner
from backcast.agents.full_backups import two_way_model
from backcast.core.compiling import in_python
from backcast.core.randomness import uniform
from backcast.extending import kernel, part, register
from backcast.learners import TD
from backcast.models.linked import LinkedModel, linked
from backcast.planners.blend import MOST, Choices, Gate, commit, foresee, wait, worth
from backcast.planners.edges import Edges
from backcast.planners.forward import draw_place
from backcast.planners.queue import NEGLIGIBLE, Queue, withdraw

ROLL_OUTS, STEPS = 5, 30


@part
class ByNeed(NamedTuple):
    """`Blend` with another priority; fields as there, and those that need takes."""

    backups: int
    gate: Gate
    expected: Any
    value: Any
    policy: Any
    announced: Any
    reach: Any
    queue: Queue
    prior: Any
    choices: Choices
    edges: Edges
    need: Any  # (S,)
    expecting: Any  # (ROLL_OUTS · STEPS,) the states with a need, each at least once
    start: Any  # (1,) where the episode began
    stream: Any

    def begin(self, model: LinkedModel, values: Any, s: int, discount: float, rates: Any) -> int:
        """An episode begins in s."""
        self.start[0] = s
        return 0

    def plan(self, model: LinkedModel, values: Any, step: Any, discount: float, rates: Any) -> int:
        """Take in the step, then plan where gain × need is largest; the number of value updates."""
        shown = values.get(step.s, step.a)
        foresee(self, model, step, discount)
        gained = wait(self, model, values.n_actions, step.s)
        self.gate.brings[1] += 1.0
        self.gate.brings[0] += max(1.0 / self.gate.brings[1], 0.01) * (gained - self.gate.brings[0])
        self.choices.number[0] = 0
        updates = 0
        if gained > NEGLIGIBLE or values.n_actions == 1:
            withdraw(self.queue, step.s)
            note(self.choices, step.s, gained)
            updates += commit(self, model, values, step.s)
        if values.n_actions > 1 and not step.ends:
            wait(self, model, values.n_actions, step.s2)
        number = look_ahead(self, model, values.n_actions, self.start[0] if step.ends else step.s2, discount)
        for _ in range(self.backups):
            chosen, most = -1, 0.0
            for k in range(number):
                x = self.expecting[k]
                promised = self.queue.priority[x]
                if promised > 0.0 and promised >= worth(self.gate) and promised * self.need[x] > most:
                    chosen, most = x, promised * self.need[x]
            if chosen < 0:
                break
            note(self.choices, chosen, self.queue.priority[chosen])
            withdraw(self.queue, chosen)
            updates += commit(self, model, values, chosen)
        for k in range(number):
            self.need[self.expecting[k]] = 0.0
        return updates + (values.get(step.s, step.a) == shown)

    @in_python
    def chosen(self) -> list[tuple[int, float]]:
        """The states that were committed after the last real step, and what each promised; its own state first."""
        number = min(int(self.choices.number[0]), MOST)
        return list(zip(self.choices.states[:number].tolist(), self.choices.promised[:number].tolist(), strict=True))


@kernel
def look_ahead(planner: Any, model: LinkedModel, n_actions: int, s: int, discount: float) -> int:
    """Write the need of all states that roll-outs from s meet; how many places of `expecting` are in use."""
    rows, number = model.counts.rows, 0
    for _ in range(ROLL_OUTS):
        x, weight = s, 1.0 / ROLL_OUTS
        for _ in range(STEPS):
            planner.need[x] += weight
            planner.expecting[number] = x
            number += 1
            pair = x * n_actions + planner.policy[x]
            if rows.used[pair] == 0:
                break
            place = draw_place(rows, pair, uniform(planner.stream))
            x = rows.key[place] if rows.carried[place] > 0.0 else planner.start[0]
            weight *= discount
    return number


@kernel
def note(choices: Choices, s: int, promised: float) -> None:
    """A state was committed that promised so much."""
    number = choices.number[0]
    if number < choices.states.size:
        choices.states[number], choices.promised[number] = s, promised
    choices.number[0] = number + 1


@register(
    "blend-by-need", plans=True, learns_model=False, settings=("sample", "prior", "gate", "forget"), averages=True
)
def blend_by_need(setup: Any, agent: Any) -> tuple[Any, ...]:
    """`blend` with gain × need as its priority."""
    room = np.zeros(setup.n_states), np.zeros(ROLL_OUTS * STEPS, dtype=np.int64), np.zeros(1, dtype=np.int64)
    planner = ByNeed(*blend_planner(setup, agent), *room, setup.stream())
    return linked(two_way_model(setup, agent)), planner, TD(False)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("directions", "compare"))
    parser.add_argument("--seeds", type=int)
    given = parser.parse_args()
    common = {"prior": False, "epsilon": 0.1, "schedule": "constant"}
    by_need = bc.agent("blend-by-need", **common)
    if given.what == "directions":
        directions(given.seeds or 5, by_need)
    else:
        compare({"gain": bc.agent("blend", **common), "gain × need": by_need}, given.seeds or 40)


if __name__ == "__main__":
    main()
