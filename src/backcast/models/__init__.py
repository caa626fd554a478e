"""What is learned about the world: rows of probabilities, looking forward or backward."""

from backcast.models.backward import BackwardModel
from backcast.models.forward import ForwardModel
from backcast.models.none import NoModel
from backcast.models.rows import Rows

__all__ = ["BackwardModel", "ForwardModel", "NoModel", "Rows"]
