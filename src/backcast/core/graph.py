"""Graph algorithms on chains: reachable states and recurrent classes."""

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from backcast.core.arrays import Indices, Mask


def breadth_first(graph: sparse.csr_array, sources: Mask) -> Indices:
    """The states reachable from `sources` (S,) along the stored entries of `graph` (S, S), nearest first."""
    size, origin = graph.shape[0], np.flatnonzero(sources)
    # an extra state from which the sources are reached
    indices, indptr = np.append(graph.indices, origin), np.append(graph.indptr, graph.nnz + len(origin))
    rooted = sparse.csr_array((np.ones(len(indices)), indices, indptr), shape=(size + 1, size + 1))
    order = csgraph.breadth_first_order(rooted, size, return_predecessors=False)
    return order[1:].astype(np.int64)


def reachable(graph: sparse.csr_array, sources: Mask) -> Mask:
    """The states (S,) reachable from `sources` (S,), sources included."""
    found = np.zeros(graph.shape[0], dtype=np.bool_)
    found[breadth_first(graph, sources)] = True
    return found


def recurrent_classes(graph: sparse.csr_array) -> list[Indices]:
    """The closed communicating classes of a chain, each as its states in ascending order.

    A class is recurrent when no edge leaves it; all other states are transient.
    """
    count, label = csgraph.connected_components(graph, directed=True, connection="strong")
    source = np.repeat(np.arange(graph.shape[0]), np.diff(graph.indptr))
    leaves = label[source] != label[graph.indices]
    closed = np.ones(count, dtype=np.bool_)
    closed[label[source[leaves]]] = False
    members = np.argsort(label, kind="stable")
    bounds = np.searchsorted(label[members], np.arange(count + 1))
    return [members[bounds[c] : bounds[c + 1]].astype(np.int64) for c in np.flatnonzero(closed)]
