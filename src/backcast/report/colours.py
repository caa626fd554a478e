"""The colours of agents, the same in figures and in the lab. This module imports no matplotlib, which takes seconds."""

from zlib import crc32

from backcast.agents.kinds import KINDS, Kind

# Okabe and Ito's but for grey and indigo, so that they can be told apart with any colour vision.
GREY, FORWARD, BACKWARD = "#4d4d4d", "#0072b2", "#d55e00"
FAMILIES = {
    "TD and SARSA": GREY,
    "Returns and traces": "#cc79a7",
    "Replay and Dyna": "#009e73",
    "Sweeping and solving": "#5e4fa2",
    "Forward planning": FORWARD,
    "Backward planning": BACKWARD,
}  # in the order of figures; kinds name their family
NO_FAMILY = "Others"
LIGHT = {FORWARD: "#56b4e9", BACKWARD: "#e69f00"}  # for kinds that plan with the true model
READABLE = {light: shade for shade, light in LIGHT.items()}  # light text is hard to read
OTHERS = ("#882255", "#999933")


def kind_and_frame(agent: str) -> tuple[str, str]:
    """The kind of an agent, and its frame if the name has one."""
    kind, _, frame = agent.removeprefix("pure:").partition(",")[0].partition("@")
    return kind, frame


def kind_of(agent: str) -> Kind | None:
    """The kind that an agent's name begins with; None if unknown."""
    return KINDS.get(kind_and_frame(agent)[0])


def family(agent: str) -> str:
    """The family of an agent's kind."""
    its = kind_of(agent)
    return (its.family if its else "") or NO_FAMILY


def colour(agent: str) -> str:
    """The colour of an agent's kind, the same in all figures: that of its family, lighter if it knows the truth."""
    kind, its = kind_and_frame(agent)[0], kind_of(agent)
    shade = FAMILIES.get(family(agent), OTHERS[crc32(kind.encode()) % len(OTHERS)])
    return LIGHT.get(shade, shade) if its is not None and its.true else shade
