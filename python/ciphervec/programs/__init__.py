"""Programs: ordinary functions of NumPy arrays, traced to graphs of operations that can be analysed and run on
encrypted arrays. Tracing runs at the client, without a key."""

from __future__ import annotations

from .graph import FUNCTIONS, OPERATIONS, Graph, Node
from .helpers import fold, relu, sigmoid, take, topk_mask, within
from .kinds import Declared, Kind, public, secret
from .plan import Client, Evaluation, Plan, Server
from .program import Program, program
from .reference import check_inputs, evaluate, evaluate_nodes, observe
from .source import Line
from .trace import Traced

__all__ = [
    "FUNCTIONS",
    "OPERATIONS",
    "Client",
    "Declared",
    "Evaluation",
    "Graph",
    "Kind",
    "Line",
    "Node",
    "Plan",
    "Program",
    "Server",
    "Traced",
    "check_inputs",
    "evaluate",
    "evaluate_nodes",
    "fold",
    "observe",
    "program",
    "public",
    "relu",
    "secret",
    "sigmoid",
    "take",
    "topk_mask",
    "within",
]
