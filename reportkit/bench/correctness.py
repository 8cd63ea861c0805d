"""Right first: what a compiled call returned, held against eager's and against an fp64 copy.

Source of the rule: `same` in PyTorch's torch/_dynamo/utils.py, as its benchmarks use it.
"""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from reportkit.bench import timing
from reportkit.records import Correctness

if TYPE_CHECKING:
    from collections.abc import Callable

    from reportkit.plan import Here, Sides

SEED = 0
"""What every call that is compared starts its random numbers from, as PyTorch's benchmarks do."""


def reset_random() -> None:
    """Start every generator that a workload may draw from anew."""
    import torch

    torch.manual_seed(SEED)
    random.seed(SEED)
    np.random.seed(SEED)  # noqa: NPY002 -- the global generator is what a workload would use


def random_state(here: Here) -> bytes:
    """Return where torch's generators stand."""
    import torch

    states = [torch.get_rng_state()] + ([torch.cuda.get_rng_state()] if here.device == "cuda" else [])
    return b"".join(state.numpy().tobytes() for state in states)


def kept(call: Callable[[], Any], here: Here) -> tuple[float, list[Any]]:
    """Return the seconds of one call and copies of its tensors: it may write the next result over this one."""
    reset_random()
    seconds, output = timing.once(call, here)
    return seconds, [tensor.detach().clone() for tensor in tensors(output)]


def on_host(outputs: list[Any]) -> list[Any]:
    """Return the tensors in the host's memory."""
    return [tensor.cpu() for tensor in outputs]


def alike(correctness: Correctness, eager: list[Any], ours: list[Any]) -> Correctness:
    """Hold timed calls against each other whose values can't be compared: their shapes and types can."""
    if not correctness.right or _forms(eager) == _forms(ours):
        return correctness
    detail = "what is timed returns other shapes or types on either side, though what is checked in its place is right"
    return msgspec.structs.replace(correctness, right=False, detail=detail)


def still(correctness: Correctness, outputs: dict[str, list[Any]], sides: Sides, here: Here) -> Correctness:
    """Hold a last call of either side against its earlier result: if it changed, calls were not the same work."""
    if not correctness.right:
        return correctness
    noise = correctness.multiplier * (correctness.eager_error or 0.0)
    for side, call in (("eager", sides.eager), ("compiled", sides.compiled)):
        last = on_host(kept(call, here)[1])
        if _forms(outputs[side]) != _forms(last) or not _same_again(outputs[side], last, sides.tolerance, noise):
            detail = (
                f"after timing, {side} returns something else than before it, so that its calls were not the same work"
            )
            return msgspec.structs.replace(correctness, right=False, detail=detail)
    return correctness


def follows(correctness: Correctness, sides: Sides, here: Here) -> Correctness:
    """Change the inputs in place and hold the sides against each other again: a result that was kept is found out."""
    if not correctness.right or not sides.inputs:
        return correctness
    originals = [tensor.detach().clone() for tensor in sides.inputs]
    try:
        for tensor in sides.inputs:
            tensor.detach().copy_(_other(tensor.detach()))
        first, second, ours = (kept(call, here)[1] for call in (sides.eager, sides.eager, sides.compiled))
        again = compare(first, second, ours, sides)
    finally:
        for tensor, original in zip(sides.inputs, originals, strict=True):
            tensor.detach().copy_(original)
    if again.right:
        return correctness
    detail = f"after its inputs were changed in place, compiled did not follow eager: {again.detail}"
    return msgspec.structs.replace(correctness, right=False, detail=detail)


def _other(tensor: Any) -> Any:
    """Return other values: as large, so that nothing overflows that did not before; as indices, those there were."""
    if tensor.is_floating_point() or tensor.is_complex():
        return -tensor.flip(0) if tensor.dim() else -tensor
    return tensor.roll(1, -1) if tensor.dim() else tensor


def compare(first: list[Any], second: list[Any], ours: list[Any], sides: Sides, *, draws: bool = False) -> Correctness:
    """Hold the compiled output against eager's by their errors against fp64.

    A tensor is right if it is close to eager's by the tolerance, or if its root mean square error
    against fp64 is at most `multiplier` times eager's plus a tenth of the tolerance. Source: `same`
    in torch/_dynamo/utils.py, with its multiplier of 2 for fp32 and 3 for half precision. Where the
    call `draws` random numbers, only closeness counts: other numbers are as far from fp64 as eager's.
    """
    import torch

    half = any(tensor.dtype in {torch.float16, torch.bfloat16} for tensor in first)
    multiplier = 3.0 if half else 2.0
    noise = eager_error = compiled_error = None
    problem = "" if _forms(first) == _forms(second) else "two eager runs return other shapes or types"
    if not problem:
        problem = _shape_problem(first, ours)
        noise = max(
            (float((_wide(a) - _wide(b)).abs().max()) for a, b in zip(first, second, strict=True) if a.numel()),
            default=0.0,
        )
        if first and not _same_again(first, second, sides.tolerance):
            problem = (
                f"two eager runs from the same seed differ by up to {noise:.3g}: "
                "the call is random, or changes what it works on"
            )
    if not problem:
        reset_random()
        exact = tensors(sides.reference()) if sides.reference is not None else None
        if exact is not None and _shapes(exact) != _shapes(first):
            problem = "the fp64 copy returns other shapes than eager, so that there is nothing to hold either against"
        else:
            if exact is not None:
                eager_error, compiled_error = (_rmse(side, exact) for side in (first, ours))
            problem = _not_finite(first, ours) or _difference(
                first, ours, None if draws else exact, sides.tolerance, multiplier
            )
            if draws and problem:
                problem = (
                    f"the call draws random numbers, and {problem}: compiled code may draw others from the same seed"
                )
    return Correctness(
        right=not problem,
        eager_error=_finite(eager_error),
        compiled_error=_finite(compiled_error),
        noise_floor=_finite(noise),
        tolerance=sides.tolerance,
        multiplier=multiplier,
        detail=problem,
    )


def _close(one: Any, other: Any, tolerance: float) -> bool:
    import torch

    return bool(torch.allclose(one, other, atol=tolerance, rtol=tolerance, equal_nan=True))


def _same_again(before: list[Any], after: list[Any], tolerance: float, noise: float = 0.0) -> bool:
    """Whether a call returned what it had returned: by the tolerance, a tenth of it on average, and the noise known."""
    return all(
        _close(a, b, tolerance) or _rmse([a], [b]) <= noise + tolerance / 10 for a, b in zip(before, after, strict=True)
    )


def _difference(eager: list[Any], ours: list[Any], exact: list[Any] | None, tolerance: float, multiplier: float) -> str:
    """Return what is wrong with the compiled result, by the tolerance and by its error against fp64."""
    if all(_close(a, b, tolerance) for a, b in zip(eager, ours, strict=True)):
        return ""
    if exact is None:
        return "the compiled result is not close to eager's, and there is no fp64 copy to ask"
    allowed = all(
        _rmse([b], [c]) <= multiplier * _rmse([a], [c]) + tolerance / 10
        for a, b, c in zip(eager, ours, exact, strict=True)
    )
    return "" if allowed else "the compiled error against fp64 is larger than eager's allows"


def _not_finite(eager: list[Any], ours: list[Any]) -> str:
    import torch

    whole, other = (all(bool(torch.isfinite(tensor).all()) for tensor in side) for side in (eager, ours))
    if whole and not other:
        return "the compiled result has a NaN or an infinity, and eager's has none"
    return "" if whole else "the result has a NaN or an infinity, so that nothing can be said of its error"


def _finite(number: float | None) -> float | None:
    """Return the number, or None for a NaN or an infinity, which a case file does not hold."""
    return number if number is not None and math.isfinite(number) else None


def _shape_problem(eager: list[Any], ours: list[Any]) -> str:
    if not eager:
        return "the call returns no tensor, so that there is nothing to compare"
    if not any(tensor.numel() for tensor in eager):
        return "the call returns no element, so that there is nothing to compare"
    if _shapes(eager) != _shapes(ours):
        return "the compiled result has other shapes than eager's"
    if [tensor.dtype for tensor in eager] != [tensor.dtype for tensor in ours]:
        return "the compiled result has other types than eager's"
    return ""


def _forms(outputs: list[Any]) -> list[tuple[tuple[int, ...], Any]]:
    return [(tuple(tensor.shape), tensor.dtype) for tensor in outputs]


def _shapes(outputs: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(tensor.shape) for tensor in outputs]


def _wide(tensor: Any) -> Any:
    """Return the tensor in fp64, a complex one as its parts."""
    import torch

    return (torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor).double()


def _rmse(outputs: list[Any], exact: list[Any]) -> float:
    """Return the root mean square error over all elements, computed in fp64."""
    squares = sum(float(((_wide(a) - _wide(b)) ** 2).sum()) for a, b in zip(outputs, exact, strict=True))
    return float((squares / max(1, sum(tensor.numel() for tensor in exact))) ** 0.5)


def tensors(output: Any) -> list[Any]:
    """Return the tensors in nested tuples, lists, dicts and model outputs, in order."""
    import torch
    from torch.utils._pytree import tree_flatten

    if isinstance(output, dict):
        output = dict(output)  # A model library's output class is a dict that pytree may not know.
    return [leaf for leaf in tree_flatten(output)[0] if isinstance(leaf, torch.Tensor)]
