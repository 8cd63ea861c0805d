"""The scaled GELU of `opaque` as a user's own Triton kernel, which Dynamo sees into.

Imported only where it runs: Triton comes with torch's CUDA wheels alone.
"""

import torch
import triton
import triton.language as tl


@triton.jit
def _kernel(numbers, result, scale, size, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, N803 -- Triton's own language
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    x = tl.load(numbers + place, mask=inside)
    tl.store(result + place, scale * 0.5 * x * (1.0 + tl.erf(x * 0.70710678118654752)), mask=inside)


def scaled_gelu(numbers: torch.Tensor, scale: float) -> torch.Tensor:
    """Return the scaled GELU of contiguous numbers in fp32."""
    result = torch.empty_like(numbers)
    size = numbers.numel()
    _kernel[(triton.cdiv(size, 1024),)](numbers, result, scale, size, BLOCK=1024)
    return result
