"""The models and inputs that sections share: real architectures, random seeded weights.

Speed does not depend on trained weights. Each function returns a module in evaluation mode on the
device, and its inputs, by position: Dynamo of 2.4 takes no keywords for a torch.nn.Sequential.
Smoke scale keeps the architecture and shrinks sizes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from reportkit.plan import Sides

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from reportkit.plan import Here

SEED = 1337
Inputs = tuple[torch.Tensor, ...]


def resnet50(here: Here, *, batch: int = 64) -> tuple[nn.Module, Inputs]:
    """ResNet-50 of torchvision on `batch` images, 3 x 224 x 224 (smoke: one block a stage, 2 x 3 x 64 x 64)."""
    from torchvision.models.resnet import Bottleneck, ResNet

    torch.manual_seed(SEED)
    full = here.scale == "full"
    model = ResNet(Bottleneck, [3, 4, 6, 3] if full else [1, 1, 1, 1])
    side = 224 if full else 64
    images = torch.randn(batch if full else 2, 3, side, side)
    return model.eval().to(here.device), (images.to(here.device),)


def bert_base(here: Here, *, batch: int = 32, length: int = 128) -> tuple[nn.Module, Inputs]:
    """BERT-base of transformers on `batch` x `length` tokens (smoke: two layers of 128, 2 x 32)."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(SEED)
    if here.scale == "full":
        config = BertConfig()
    else:
        config = BertConfig(hidden_size=128, num_hidden_layers=2, num_attention_heads=2, intermediate_size=512)
        batch, length = 2, 32
    model = BertModel(config)
    tokens = torch.randint(0, config.vocab_size, (batch, length))
    mask = torch.ones_like(tokens)
    return model.eval().to(here.device), (tokens.to(here.device), mask.to(here.device))


def gpt2_tiny(here: Here) -> tuple[nn.Module, Inputs]:
    """A GPT-2 of two layers of 64 and its tokens: for questions about an interface, where size does not matter."""
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(SEED)
    config = GPT2Config(n_layer=2, n_head=2, n_embd=64, vocab_size=512, n_positions=64)
    model = GPT2LMHeadModel(config)
    tokens = torch.randint(0, config.vocab_size, (1, 16))
    return model.eval().to(here.device), (tokens.to(here.device),)


def gelu_chain(here: Here) -> tuple[nn.Module, Inputs]:
    """Two linear layers around a GELU: the smallest thing that a backend has something to do for."""
    torch.manual_seed(SEED)
    model = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64))
    return model.eval().to(here.device), (torch.randn(8, 64).to(here.device),)


def quiet(model: Callable[..., Any], inputs: Inputs, repeats: int = 1) -> Callable[[], Any]:
    """Return the call that runs a model on its inputs so many times, without gradients."""

    def call() -> object:
        output: object = None
        with torch.no_grad():
            for _ in range(repeats):
                output = model(*inputs)
        return output

    return call


def double(model: nn.Module, inputs: Inputs) -> tuple[nn.Module, Inputs]:
    """Return a deep copy of model and inputs with every floating-point tensor in fp64."""
    import copy

    twin = copy.deepcopy(model).double()
    return twin, tuple(tensor.double() if tensor.is_floating_point() else tensor for tensor in inputs)


def mobilenet_v2(here: Here, *, batch: int = 1) -> tuple[nn.Module, Inputs]:
    """MobileNetV2 of torchvision on `batch` images, 3 x 224 x 224 (smoke: 64 x 64); small kernels, hard to keep fed."""
    from torchvision.models import MobileNetV2

    torch.manual_seed(SEED)
    side = 224 if here.scale == "full" else 64
    images = torch.randn(batch, 3, side, side)
    return MobileNetV2().eval().to(here.device), (images.to(here.device),)


def resnet50_half(here: Here) -> tuple[nn.Module, Inputs]:
    """ResNet-50 with weights and images in fp16; in fp32 on a CPU, which is slow at fp16."""
    model, (images,) = resnet50(here)
    return (model, (images,)) if here.device == "cpu" else (model.half(), (images.half(),))


def gelu(here: Here) -> tuple[nn.Module, Inputs]:
    """One small operator: a GELU of 64 x 64 numbers."""
    torch.manual_seed(SEED)
    return nn.GELU(), (torch.randn(64, 64).to(here.device),)


def _square(size: int) -> nn.Module:
    """Return a matrix product that keeps the size of its numbers, so that it can be repeated."""
    matrix = nn.Linear(size, size, bias=False)
    nn.init.normal_(matrix.weight, std=size**-0.5)
    return matrix


def product(here: Here) -> tuple[nn.Module, Inputs]:
    """One product of square matrices: 2048 in fp16, enough to keep a GPU busy while the next is launched (CPU: 96)."""
    torch.manual_seed(SEED)
    size, kind = (2048, torch.float16) if here.device == "cuda" else (96, torch.float32)
    return _square(size).to(here.device, kind), (torch.randn(size, size).to(here.device, kind),)


def product_in_single(here: Here) -> tuple[nn.Module, Inputs]:
    """The same in fp32, where TF32 can be switched on."""
    torch.manual_seed(SEED)
    size = 2048 if here.device == "cuda" else 96
    return _square(size).to(here.device), (torch.randn(size, size).to(here.device),)


def small_product(here: Here) -> tuple[nn.Module, Inputs]:
    """One product of two matrices: 1024 x 1024 on a GPU, so that launching it is hidden; 32 x 32 on a CPU."""
    torch.manual_seed(SEED)
    side = 1024 if here.device == "cuda" else 32
    model = nn.Linear(side, side, bias=False)
    return model.eval().to(here.device), (torch.randn(side, side).to(here.device),)


def small_relu(here: Here) -> tuple[nn.Module, Inputs]:
    """One ReLU of 64 numbers: on any device, launching it is all that it costs."""
    torch.manual_seed(SEED)
    return nn.ReLU().eval().to(here.device), (torch.randn(64).to(here.device),)


def long_product(here: Here) -> tuple[nn.Module, Inputs]:
    """One product of square matrices that no host is too slow to launch in time: 4096 in fp16 (CPU: 96 in fp32)."""
    torch.manual_seed(SEED)
    size, kind = (4096, torch.float16) if here.device == "cuda" else (96, torch.float32)
    return _square(size).to(here.device, kind), (torch.randn(size, size).to(here.device, kind),)


def mlp(here: Here, *, batch: int = 256) -> tuple[nn.Module, Inputs]:
    """Four times a linear layer of 1024, a GELU and a layer norm, on `batch` rows (smoke: of 128, 16 rows)."""
    torch.manual_seed(SEED)
    width, batch = (1024, batch) if here.scale == "full" else (128, 16)
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))]
    return nn.Sequential(*layers).eval().to(here.device), (torch.randn(batch, width).to(here.device),)


def bert_lengths(here: Here, positions: int, lengths: Sequence[int]) -> tuple[nn.Module, list[Inputs]]:
    """BERT-base with so many positions, and eleven rows of tokens of each length (smoke: one layer of 16).

    There are not as many rows as any length has tokens: sizes that are equal at the first call are taken for one, and
    a second graph is compiled when they differ, which says nothing about lengths.
    """
    from transformers import BertConfig, BertModel

    torch.manual_seed(SEED)
    small = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    config = BertConfig(max_position_embeddings=positions, **({} if here.scale == "full" else small))
    rows = [torch.randint(0, config.vocab_size, (11, length)).to(here.device) for length in lengths]
    return BertModel(config).eval().to(here.device), [(tokens, torch.ones_like(tokens)) for tokens in rows]


def sides(model: nn.Module, compiled: Callable[..., Any], inputs: Inputs, tolerance: float) -> Sides:
    """Return a model and what was made of it as the sides of a timing, both without gradients."""

    def reference() -> object:
        return quiet(*double(model, inputs))()

    return Sides(
        eager=quiet(model, inputs),
        compiled=quiet(compiled, inputs),
        reference=reference,
        tolerance=tolerance,
        inputs=tuple(tensor for tensor in inputs if tensor.is_floating_point()),
    )


def graphs_for(model: nn.Module, calls: Sequence[Inputs], **options: Any) -> int:
    """Compile a model, make every call, and return how many graphs served them; the backend is `aot_eager`.

    Raises:
        RuntimeError: a call ran without a graph, as those do that meet the recompile limit, or did not return what
            eager does: then the count would say nothing.
    """
    from torch._dynamo.backends.registry import lookup_backend

    from reportkit.bench import counters

    ran = 0

    def counting(graph: Any, inputs: Any) -> Callable[..., Any]:
        compiled = lookup_backend("aot_eager")(graph, inputs)

        def run(*arguments: Any) -> Any:
            nonlocal ran
            ran += 1
            return compiled(*arguments)

        return run

    counters.reset()
    compiled = torch.compile(model, backend=counting, **options)
    for number, inputs in enumerate(calls):
        before = ran
        right = alike(quiet(compiled, inputs)(), quiet(model, inputs)())
        if ran == before or not right:
            problem = "ran without a graph" if ran == before else "did not return what eager does"
            message = f"call {number + 1} of {len(calls)} {problem}, so that a count of graphs would say nothing"
            raise RuntimeError(message)
    return counters.unique_graphs()


def alike(one: object, other: object, tolerance: float = 1e-3) -> bool:
    """Whether two outputs hold the same tensors, within an absolute and relative tolerance."""
    from reportkit.bench.correctness import tensors

    left, right = tensors(one), tensors(other)
    return [tensor.shape for tensor in left] == [tensor.shape for tensor in right] and all(
        torch.allclose(mine, theirs, rtol=tolerance, atol=tolerance) for mine, theirs in zip(left, right, strict=True)
    )


def capture_model(name: str, here: Here) -> tuple[nn.Module, Inputs]:
    """The code of a real model at a small configuration, the same at both scales: capture does not depend on size."""
    small = replace(here, scale="smoke")
    torch.manual_seed(SEED)
    if name == "resnet50":
        return resnet50(small)
    if name == "bert":
        return bert_base(small)
    if name == "gpt2":
        return gpt2_tiny(small)
    model: nn.Module
    if name == "vit":
        from torchvision.models import VisionTransformer

        model = VisionTransformer(
            image_size=32, patch_size=16, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=10
        )
        inputs: Inputs = (torch.randn(2, 3, 32, 32),)
    else:
        from diffusers import UNet2DConditionModel

        # Two of the four levels of Stable Diffusion 1.5, one with attention over the text and one without.
        model = UNet2DConditionModel(
            sample_size=16,
            down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
            up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
            block_out_channels=(16, 32),
            layers_per_block=1,
            norm_num_groups=8,
            attention_head_dim=4,
            cross_attention_dim=32,
        )
        inputs = (torch.randn(2, 4, 16, 16), torch.tensor(10), torch.randn(2, 7, 32))
    return model.eval().to(here.device), tuple(tensor.to(here.device) for tensor in inputs)


class Branch(nn.Module):  # type: ignore[misc]  # Torch is not installed where types are checked.
    """An `if` that depends on the data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Double what sums up to more than nothing, and lower the rest."""
        if bool(x.sum() > 0):
            return x * 2
        return x - 1


class Loop(nn.Module):  # type: ignore[misc]
    """A `while` that depends on the data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Add one until the sum is more than nothing."""
        while bool(x.sum() < 0):
            x = x + 1
        return x


def control_flow(here: Here) -> dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """Return a model for each kind of data-dependent control flow, and inputs that take different ways through it."""
    ways = tuple(torch.full((4,), value).to(here.device) for value in (1.0, -1.0, -5.0))
    return {"if": (Branch().to(here.device), ways), "while": (Loop().to(here.device), ways)}


def attention(here: Here) -> tuple[Callable[..., torch.Tensor], Inputs]:
    """Scaled-dot-product attention: 8 x 12 heads, 512 tokens of 64 numbers, in fp16."""
    torch.manual_seed(SEED)
    inputs = tuple(torch.randn(8, 12, 512, 64).to(here.device, torch.float16) for _ in range(3))
    return nn.functional.scaled_dot_product_attention, inputs


def layer_norm(here: Here, *, width: int = 768) -> tuple[nn.Module, Inputs]:
    """A layer norm over 4096 rows as wide as BERT-base's, in fp16."""
    torch.manual_seed(SEED)
    rows = torch.randn(4096, width).to(here.device, torch.float16)
    return nn.LayerNorm(width).eval().to(here.device, torch.float16), (rows,)
