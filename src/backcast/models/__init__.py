"""Models of the world: rows of probabilities, forward or backward."""

from backcast.models.backward import BackwardModel
from backcast.models.contract import BackwardRows, Model
from backcast.models.counts import CountRows
from backcast.models.extended import ExtendedModel
from backcast.models.forward import ExtendedForward, ForwardModel
from backcast.models.lambda_td import LambdaModel
from backcast.models.none import NoModel
from backcast.models.rows import Rows
from backcast.models.side_by_side import BothModels

__all__ = [
    "BackwardModel",
    "BackwardRows",
    "BothModels",
    "CountRows",
    "ExtendedForward",
    "ExtendedModel",
    "ForwardModel",
    "LambdaModel",
    "Model",
    "NoModel",
    "Rows",
]
