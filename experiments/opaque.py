"""A scaled GELU written by hand, as an operator that PyTorch can call and no compiler of its can see into.

On a GPU it is CUDA, compiled by the NVRTC that came with this torch and loaded through the driver: no toolkit is
needed, and none of another version can get in. On a CPU it is C++, compiled by the system's compiler. Either is
called through `torch.library.custom_op`, as PyTorch's documentation asks for.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reportkit.plan import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable

NAME = "scaled_gelu"

CUDA = """
extern "C" __global__ void scaled_gelu(const float *in, float *out, float scale, long long size) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < size) out[i] = scale * 0.5f * in[i] * (1.0f + erff(in[i] * 0.70710678118654752f));
}
"""

CPP = """
#include <cmath>
extern "C" void scaled_gelu(const float *in, float *out, float scale, long long size) {
    for (long long i = 0; i < size; ++i)
        out[i] = scale * 0.5f * in[i] * (1.0f + std::erf(in[i] * 0.70710678118654752f));
}
"""

THREADS = 256
"""Threads of a block."""


@functools.cache
def scaled_gelu() -> Any:
    """Register the operator once a process and return it: a tensor in fp32 and a factor to a new tensor.

    What it runs is compiled when it is first called on a device.
    """
    import torch

    def run(numbers: Any, scale: float) -> Any:
        if numbers.dtype != torch.float32 or not numbers.is_contiguous():
            message = f"{NAME} takes contiguous fp32, and this is {numbers.dtype} with strides {numbers.stride()}"
            raise ValueError(message)
        result = torch.empty_like(numbers)
        launcher(numbers.device.type)(numbers, result, scale)
        return result

    def shape(numbers: Any, scale: float) -> Any:  # noqa: ARG001 -- the operator's own arguments
        return torch.empty_like(numbers)

    operator = torch.library.custom_op(
        f"checked::{NAME}", run, mutates_args=(), schema="(Tensor numbers, float scale) -> Tensor"
    )
    operator.register_fake(shape)
    return getattr(torch.ops.checked, NAME)


@functools.cache
def launcher(device: str) -> Callable[[Any, Any, float], None]:
    """Return what fills a tensor from another one on that kind of device, compiled now.

    Raises:
        Unavailable: there is nothing to compile it with.
    """
    return _cuda_launcher() if device == "cuda" else _cpp_launcher()


def _cpp_launcher() -> Callable[[Any, Any, float], None]:
    import os
    import shlex
    import shutil
    import subprocess
    import tempfile

    compiler = shlex.split(os.environ.get("CXX", "g++"))
    if shutil.which(compiler[0]) is None:
        message = f"needs a C++ compiler, and there is no {compiler[0]}"
        raise Unavailable(message)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / f"{NAME}.cpp", Path(folder) / f"{NAME}.so"
        source.write_text(CPP, encoding="utf-8")
        command = [*compiler, "-O3", "-shared", "-fPIC", "-o", str(library), str(source)]
        built = subprocess.run(command, capture_output=True, text=True, check=False)
        if built.returncode:
            message = f"{compiler[0]} failed with {built.returncode}: {built.stderr.strip()[-500:]}"
            raise RuntimeError(message)
        function = getattr(ctypes.CDLL(str(library)), NAME)  # Stays mapped when the file is gone.
    function.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_float, ctypes.c_longlong)
    function.restype = None

    def launch(numbers: Any, result: Any, scale: float) -> None:
        function(numbers.data_ptr(), result.data_ptr(), scale, numbers.numel())

    return launch


def nvrtc() -> Path:
    """Return the NVRTC library that was installed beside torch.

    Raises:
        Unavailable: there is none, as with a torch for CPUs.
    """
    import torch

    # Its builtins lie beside it and begin alike.
    found = sorted((Path(torch.__file__).parent.parent / "nvidia").glob("*/lib/libnvrtc.so*"))
    if not found:
        message = (
            f"needs the NVRTC that comes with torch's CUDA wheels, and torch {torch.__version__} has none beside it"
        )
        raise Unavailable(message)
    return found[0]


def cubin(source: str, architecture: str) -> bytes:
    """Return the machine code of a CUDA source for an architecture such as `sm_90`; needs no GPU.

    Raises:
        RuntimeError: NVRTC refused; the message names its function and holds its log.
    """
    library = ctypes.CDLL(str(nvrtc()))
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    library.nvrtcGetErrorString.argtypes = (ctypes.c_int,)

    def check(function: str, *arguments: Any, log: Callable[[], str] = str) -> None:
        code = getattr(library, function)(*arguments)
        if code:
            message = f"{function}: {library.nvrtcGetErrorString(code).decode()} {log()}".strip()
            raise RuntimeError(message)

    def bytes_of(kind: str) -> bytes:
        size = ctypes.c_size_t()
        check(f"nvrtcGet{kind}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        check(f"nvrtcGet{kind}", program, buffer)
        return buffer.raw

    program = ctypes.c_void_p()
    check("nvrtcCreateProgram", ctypes.byref(program), source.encode(), f"{NAME}.cu".encode(), 0, None, None)
    try:
        options = (ctypes.c_char_p * 1)(f"--gpu-architecture={architecture}".encode())
        check(
            "nvrtcCompileProgram",
            program,
            len(options),
            options,
            log=lambda: bytes_of("ProgramLog").rstrip(b"\0").decode(errors="replace")[:500],
        )
        return bytes_of("CUBIN")
    finally:
        check("nvrtcDestroyProgram", ctypes.byref(program))


def _cuda_launcher() -> Callable[[Any, Any, float], None]:
    import torch

    driver = ctypes.CDLL("libcuda.so.1")
    pointer = ctypes.c_void_p
    whole = ctypes.c_uint
    driver.cuModuleLoadData.argtypes = (ctypes.POINTER(pointer), ctypes.c_char_p)
    driver.cuModuleGetFunction.argtypes = (ctypes.POINTER(pointer), pointer, ctypes.c_char_p)
    # The function; blocks and threads in three dimensions; shared memory; stream; arguments; none of the other kind.
    driver.cuLaunchKernel.argtypes = (pointer, *(whole,) * 7, pointer, ctypes.POINTER(pointer), pointer)

    def check(function: str, *arguments: Any) -> None:
        code = getattr(driver, function)(*arguments)
        if code:
            text = ctypes.c_char_p()
            driver.cuGetErrorString(code, ctypes.byref(text))
            message = f"{function}: {(text.value or b'an unknown error').decode()} ({code})"
            raise RuntimeError(message)

    major, minor = torch.cuda.get_device_capability()
    code = cubin(CUDA, f"sm_{major}{minor}")
    torch.cuda.synchronize()  # Torch's context is the one to load into; this makes it, and current to this thread.
    module, function = pointer(), pointer()
    check("cuModuleLoadData", ctypes.byref(module), code)
    check("cuModuleGetFunction", ctypes.byref(function), module, NAME.encode())

    def launch(numbers: Any, result: Any, scale: float) -> None:
        size = numbers.numel()
        if not size:
            return  # The driver takes no launch of no blocks.
        values = (
            pointer(numbers.data_ptr()),
            pointer(result.data_ptr()),
            ctypes.c_float(scale),
            ctypes.c_longlong(size),
        )
        arguments = (pointer * len(values))(*(ctypes.addressof(value) for value in values))
        blocks = -(-size // THREADS)
        stream = torch.cuda.current_stream().cuda_stream
        check("cuLaunchKernel", function, blocks, 1, 1, THREADS, 1, 1, 0, stream, arguments, None)

    return launch
