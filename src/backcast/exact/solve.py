"""Linear systems (I − Q) x = b in which every state of the substochastic Q eventually leaks.

I − Q is then a nonsingular M-matrix: its inverse Σ_k Q^k has no negative entry. That gives a certificate for
iterative answers: if t satisfies (I − Q) t ≥ c > 0 everywhere, then ‖(I − Q)⁻¹‖_∞ ≤ max(t) / c, and the residual
bounds the error. Large worlds that mix fast are solved by BiCGSTAB and certified; what cannot be certified
(long corridors, wide grids: their sparse factors are thin) is factorised.
"""

import numpy as np
from scipy import sparse
from scipy.sparse import linalg

from backcast.arrays import Matrix, Vector

_DIRECT = 2_000
_KRYLOV_STEPS = 150
_REFINEMENTS = 3
_TOLERANCE = 1e-11


def solve_leaky(Q: Matrix, b: Vector, *, dense: bool = False) -> Vector:
    """Solve (I − Q) x = b for x.

    Args:
        Q: (n, n), dense or csr.
        b: (n,), or (n, k) for a dense Q.
        dense: whether to solve a csr Q as a dense matrix.
    """
    x = bounded_sum(Q, b)
    if x is not None:
        return x
    if not sparse.issparse(Q) or dense:
        full = Q.toarray() if sparse.issparse(Q) else Q
        return np.linalg.solve(np.eye(len(full)) - full, b)
    system = (sparse.eye_array(Q.shape[0]) - Q).tocsr()
    x = certified_krylov(system, b) if Q.shape[0] > _DIRECT else None
    return solve_directly(system, b) if x is None else x


def bounded_sum(Q: Matrix, b: Vector, longest: int = 16) -> Vector | None:
    """Σ_k Q^k b if it ends after a few terms, because no episode is longer (a leveled chain); else None."""
    x = term = b
    for _ in range(longest):
        term = Q @ term
        if not term.any():
            return x
        x = x + term
    return None


def solve_directly(system: Matrix, b: Vector) -> Vector:
    """Sparse LU of an M-matrix: it needs no pivoting, so that the ordering is free to keep the factors thin."""
    factors = linalg.splu(
        system.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    x = factors.solve(b)
    return x + factors.solve(b - system @ x)  # one step of refinement


def certified_krylov(system: sparse.csr_array, b: Vector) -> Vector | None:
    """A Krylov solution whose relative error is certified to be below the tolerance, else None."""
    norm = _inverse_norm(system)
    if norm is None:
        return None
    tolerance = max(_TOLERANCE, 8 * np.finfo(float).eps * norm)
    x, residual = np.zeros_like(b), b
    for _ in range(_REFINEMENTS):
        correction, _ = linalg.bicgstab(system, residual, rtol=1e-9, maxiter=_KRYLOV_STEPS)
        x = x + correction
        residual = b - system @ x
        if norm * float(np.abs(residual).max()) <= tolerance * float(np.abs(x).max()):
            return x
    return None


def _inverse_norm(system: sparse.csr_array) -> float | None:
    """A certified bound on ‖system⁻¹‖_∞, or None where none was found cheaply."""
    leak = system.sum(axis=1)
    if leak.min() > 1e-5:  # t = 1 is a certificate: the discount is below 1
        return float(1 / leak.min())
    steps, _ = linalg.bicgstab(system, np.ones(len(leak)), rtol=0.0, atol=0.5, maxiter=_KRYLOV_STEPS)
    progress = float((system @ steps).min())
    return float(steps.max()) / progress if progress > 0.1 else None
