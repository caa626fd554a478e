"""Worlds that change in the course of a run, and agents whose models follow them."""

import gymnasium
import numpy as np
import pytest

import backcast as bc
from backcast.agents.room import room_for
from backcast.drivers.seed_blocks import setup_for
from backcast.studies import check_study
from backcast.studies.units import Failed, Finished, Unit, perform
from backcast.worlds.envs import TableEnv
from backcast.worlds.maze import altered_maze
from plain_replaying import textbook_dyna_plus

BEFORE, AFTER = "S.G\n.X.", "SXG\n..."
CHANGING = bc.worlds.maze(BEFORE, later=(7, AFTER), max_steps=30)


def test_a_world_that_changes_is_two_worlds_in_turn():
    assert CHANGING.name == "custom-maze-changes-7"
    assert CHANGING.mdp == bc.worlds.maze(BEFORE).mdp
    assert [CHANGING.at(taken).layout[0, 1] for taken in (0, 6, 7, 1000)] == [".", ".", "X", "X"]
    after, alone = CHANGING.later.world.mdp, bc.worlds.maze(AFTER).mdp
    free = np.flatnonzero(CHANGING.later.world.layout.ravel() != "X")
    np.testing.assert_array_equal(after.transition[free], alone.transition[free])


def test_an_agent_where_a_wall_appears_can_leave_it_and_not_come_back():
    """From cell 1, a wall from now on, right leads to the goal (cell 2), down to cell 4, and left to cell 0."""
    after = CHANGING.later.world.mdp.transition.argmax(axis=2)
    assert after[1].tolist() == [1, 2, 4, 0]
    assert after[0].tolist() == [0, 0, 3, 0]
    assert CHANGING.mdp.transition.argmax(axis=2)[4].tolist() == [4, 4, 4, 4]  # a wall of the beginning


def test_steps_are_counted_over_all_episodes():
    """Right, right is an episode of two steps; the eighth step of the run meets the wall."""
    env = TableEnv(CHANGING)
    seen = []
    for episode in range(4):
        env.reset(seed=0 if episode == 0 else None)
        seen += [env.step(1)[0], env.step(1)[0]]
    assert seen == [1, 2, 1, 2, 1, 2, 1, 2]  # the eighth step was taken from where a wall had appeared
    env.reset()
    assert env.step(1)[0] == 0
    env.reset(seed=0)  # another run
    assert env.step(1)[0] == 1


def test_pictures_show_the_maze_of_the_moment():
    env = gymnasium.make("backcast/Maze-v0", text=BEFORE, later=(1, AFTER), render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == "@.G\n.X.\n"
    env.step(2)
    assert env.render() == "SXG\nv..\n"


INTERPRETED = [
    *(("backward", {"model": "counts", "horizon": 2}), ("forward", {"model": "counts"}), ("dyna-plus", {})),
    *(("small-backups", {"forget": 0.5}), ("certainty-equivalence", {"forget": 0.5})),
]


@pytest.mark.parametrize("max_steps", [None, 5])
@pytest.mark.parametrize(
    ("kind", "options"),
    [("q", {}), ("backward", {}), *(pytest.param(*each, marks=pytest.mark.interpreted) for each in INTERPRETED)],
)
def test_stepwise_and_compiled_runs_are_the_same(kind, options, max_steps):
    """The change is in the middle of an episode; starts move as well."""
    world = bc.worlds.maze("S..\n.X.\n..G", 0.2, later=(25, ".S.\nX..\n..G"))
    agent = bc.agent(kind, schedule="constant", **options)
    compiled = bc.run(world, agent, 12, [3, 4], max_steps)
    for row, seed in enumerate((3, 4)):
        stepwise = bc.train(TableEnv(world), agent, 12, seed, max_steps)
        np.testing.assert_array_equal(stepwise.steps[0], compiled.steps[row])
        np.testing.assert_array_equal(stepwise.reward[0], compiled.reward[row])
        np.testing.assert_array_equal(stepwise.values[0], compiled.values[row])
        assert compiled.steps[row].sum() > 30


def test_a_change_that_never_comes_changes_nothing():
    """Nor does one to the same maze."""
    text = "S..\n.X.\n..G"
    agent = bc.agent("dyna", alpha=0.5)
    constant = bc.run(bc.worlds.maze(text, 0.2), agent, 20, 3)
    for later in ((2**63 - 1, "S..\n...\nX.G"), (30, text)):
        same = bc.run(bc.worlds.maze(text, 0.2, later=later), agent, 20, 3)
        np.testing.assert_array_equal(same.values, constant.values)
        np.testing.assert_array_equal(same.steps, constant.steps)


def test_there_is_room_for_what_follows_before_and_after():
    """Rows hold the union of both graphs, over several steps too: of all transitions that a mixed walk can make."""
    fan_out, fan_in = CHANGING.fan_out.reshape(-1, 4), CHANGING.fan_in
    assert fan_out[0].tolist() == [1, 2, 1, 1]  # right of the start is cell 1 or, later, a wall
    both = CHANGING.mdp.transition + CHANGING.later.world.mdp.transition
    both[CHANGING.mdp.terminal] = 0
    np.testing.assert_array_equal(fan_in, (both > 0).sum(axis=(0, 1)))
    room, _ = room_for(setup_for(CHANGING, 0, 30), bc.agent("backward", model="counts", horizon=2), forward=False)
    step = both.any(axis=1) | np.outer(CHANGING.mdp.terminal, CHANGING.starts)  # or a new episode begins
    in_two = np.einsum("iaj,jk->iak", both > 0, step)
    np.testing.assert_array_equal(room, in_two.sum(axis=(0, 1)))


@pytest.mark.parametrize(("kind", "options"), [("true-forward", {}), ("forward", {"model": "true"})])
def test_true_models_are_refused(kind, options):
    with pytest.raises(bc.InputError, match="plans with the true model, but custom-maze-changes-7 changes after 7 st"):
        bc.run(CHANGING, bc.agent(kind, **options), 1, 1)
    with pytest.raises(bc.InputError, match="plans with the true model"):
        bc.train(TableEnv(CHANGING), bc.agent(kind, **options), 1, 0)


@pytest.mark.parametrize(
    ("later", "message"),
    [
        (7, r"later: 7 given, expected \(step, text\)"),
        ("7", r"later: '7' given, expected \(step, text\)"),
        ((7,), r"later: \(7,\) given, expected \(step, text\)"),
        ((0, AFTER), "later: 0 given, expected a whole number, 1 or more"),
        ((7, 7), "later: int given, expected the maze as text"),
        ((7, "S.G"), r"later: a maze of 1 × 3 cells given, expected 2 × 3 \(rows × columns\) as in text"),
        ((7, "S..\n.XG"), "later: line 1, column 3 is a goal in one of the mazes only; goals stay where they are"),
        ((7, "SXG\n.X."), "later: the goal at line 1, column 3 cannot be reached"),
        ((7, "SXG\n..?"), "later: line 2, column 3 is '\\?'"),
    ],
)
def test_what_does_not_fit_is_refused(later, message):
    with pytest.raises(bc.InputError, match=message):
        bc.worlds.maze(BEFORE, later=later)


def test_the_mazes_of_the_textbook():
    blocking, shortcut = bc.worlds.blocking_maze(), bc.worlds.shortcut_maze(slip=0.1)
    assert (blocking.name, shortcut.name) == ("blocking-maze-changes-1000", "shortcut-maze-slip-0.1-changes-3000")
    for world, steps in ((blocking, (10, 16)), (bc.worlds.shortcut_maze(), (16, 10))):
        for maze, least in zip((world, world.later.world), steps, strict=True):
            assert (maze.layout.shape, maze.discount) == ((6, 9), 0.95)
            v = bc.exact.optimal(maze.mdp).v
            assert v[5 * 9 + 3] == pytest.approx(0.95 ** (least - 1))


def study_of(world, **agent):
    agents = [agent or {"kind": "dyna-plus", "forget": 0.2}, {"kind": "small-backups", "forget": 0.5}]
    return check_study({"name": "x", "episodes": 3, "worlds": [world], "agents": agents}, "x.toml")


@pytest.mark.parametrize(
    ("given", "world"),
    [
        ({"kind": "maze", "text": BEFORE, "later": [7, AFTER]}, bc.worlds.maze(BEFORE, later=(7, AFTER))),
        ({"kind": "blocking-maze", "step": 30, "slip": 0.1}, bc.worlds.blocking_maze(30, slip=0.1)),
        ({"kind": "shortcut-maze"}, bc.worlds.shortcut_maze()),
    ],
    ids=lambda each: each.name if isinstance(each, bc.worlds.World) else "",
)
def test_studies_have_worlds_that_change(given, world):
    study = study_of(given)
    (built,) = (each.build() for each in study.worlds)
    assert (built.name, built.mdp, built.later.step) == (world.name, world.mdp, world.later.step)
    assert built.later.world.mdp == world.later.world.mdp
    for cell in study.runs():
        assert isinstance(perform(Unit(cell, (0, 1))), Finished)


@pytest.mark.parametrize(
    ("world", "agent", "message"),
    [
        ({"kind": "maze", "later": [7]}, {}, r"worlds\.0\.later"),
        ({"kind": "maze", "text": BEFORE, "later": [7, "SG"]}, {}, "later: a maze of 1 × 2 cells given"),
        ({"kind": "maze", "step": 7}, {}, "step does not belong to a maze; its keys are text, .*, later"),
        (
            {"kind": "blocking-maze"},
            {"kind": "dyna", "forget": 1.0},
            r"forget: 1\.0 given, expected a rate in \[0, 1\)",
        ),
    ],
)
def test_studies_refuse_what_does_not_fit(world, agent, message):
    with pytest.raises(bc.InputError, match=message):
        study_of(world, **agent)


def test_a_true_model_fails_in_a_study_with_the_reason():
    cell, _ = study_of({"kind": "blocking-maze"}, kind="true-forward").runs()
    failed = perform(Unit(cell, (0,)))
    assert isinstance(failed, Failed)
    assert "'true-forward' plans with the true model, but blocking-maze-changes-1000 changes" in failed.error


# Dyna-Q+ in the blocking maze


def gained(world, agent, seeds, steps):
    """The reward of each seed in its first so many real steps: 1 for every episode that was over by then."""
    runs = bc.run(world, agent, 240, seeds)
    over = np.cumsum(runs.steps, axis=1)
    assert (over[:, -1] >= steps).all()
    return np.where(over <= steps, runs.reward, 0.0).sum(axis=1)


def far_apart(left, right):
    """The difference of two means in standard errors."""
    spread = np.sqrt(left.var(ddof=1) / len(left) + right.var(ddof=1) / len(right))
    return (left.mean() - right.mean()) / spread


@pytest.mark.slow
def test_dyna_plus_is_as_good_as_the_textbooks_in_the_blocking_maze():
    """3,000 steps, of which the last 2,000 are in the second maze; 10 planning steps, α = 1, ε = 0.1, κ = 10⁻³."""
    world, options = bc.worlds.blocking_maze(), {"epsilon": 0.1, "schedule": "constant", "sample": 10}
    textbook = np.array([textbook_dyna_plus(world, seed, 3000) for seed in range(20)])
    ours = gained(world, bc.agent("dyna-plus", bonus=1e-3, **options), 200, 3000)
    assert abs(far_apart(ours, textbook)) < 3
    never = gained(world, bc.agent("dyna-plus", bonus=1e-3, forget=0.0, **options), 200, 3000)
    assert far_apart(ours, never) > 20  # counts that never forget believe in the gap that has closed
    without = np.array([textbook_dyna_plus(world, seed, 3000, tries_all=False) for seed in range(10)])
    assert far_apart(ours, without) > 10  # nor does it work without imagining the actions never tried


@pytest.mark.slow
def test_dyna_that_forgets_finds_the_new_way_sooner():
    world, options = bc.worlds.blocking_maze(), {"epsilon": 0.1, "schedule": "constant", "sample": 10}
    forgetful, never = (gained(world, bc.agent("dyna", forget=f, **options), 100, 3000) for f in (0.5, 0.0))
    textbook = np.array([textbook_dyna_plus(world, seed, 3000, bonus=0.0, tries_all=False) for seed in range(40)])
    assert far_apart(forgetful, never) > 3
    assert abs(far_apart(forgetful, textbook)) < 3


@pytest.mark.interpreted
def test_cells_of_a_maze_are_altered_one_after_the_other():
    """S.X / ..G: cell 1 becomes a wall, the wall at 2 is torn down, entering 3 earns ½, and the goal −2."""
    world = bc.worlds.maze("S.X\n..G", discount=0.5)
    after = altered_maze(world, [(1, "X"), (2, "."), (3, 0.5), (5, -2.0)], discount=0.5)
    assert ["".join(row) for row in after.layout] == ["SX.", "..G"]
    assert ["".join(row) for row in world.layout] == ["S.X", "..G"]
    leads = after.rows.toarray().reshape(6, 4, 6).argmax(axis=-1)
    assert leads[0].tolist() == [0, 0, 3, 0]  # up, right, down, left: the way to the right is shut
    assert leads[1].tolist() == [1, 2, 4, 0]  # who stands in the new wall can leave it
    assert leads[2].tolist() == [2, 2, 5, 2]  # and the old one is floor
    reward = after.mdp.table_reward.toarray().reshape(6, 4, 6)
    assert (reward[0, 2, 3], reward[4, 3, 3], reward[3, 3, 3]) == (0.5, 0.5, 0)  # to stay is not to enter
    assert reward[2, 2, 5] == reward[4, 1, 5] == -2


@pytest.mark.interpreted
def test_altered_walls_are_those_of_a_maze_that_changes():
    world = bc.worlds.maze(
        later=(5, bc.worlds.PAPER_MAZE.replace("S.X", "S..").replace("\n....X", "\nX...X")), slip=0.3
    )
    after = altered_maze(bc.worlds.maze(slip=0.3), [(18, "."), (32, "X")], slip=0.3)
    assert (after.rows != world.later.world.rows).nnz == 0
    assert (after.mdp.table_reward != world.later.world.mdp.table_reward).nnz == 0
    assert after.max_steps == world.max_steps


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ([(0, "X")], "changes: line 1, column 1 is a start, which cannot become a wall"),
        ([(5, "X")], "changes: line 2, column 3 is a goal, which cannot become a wall"),
        ([(1, "X"), (3, "X")], "changes: the goal at line 2, column 3 cannot be reached from any start"),
        ([(6, "X")], "changes: 6 given"),
    ],
)
def test_what_a_maze_cannot_become_is_refused(changes, words):
    with pytest.raises(bc.InputError, match=words):
        altered_maze(bc.worlds.maze("S.X\n..G"), changes)
