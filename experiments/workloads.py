"""The models and inputs that sections share: real architectures, random seeded weights.

Speed does not depend on trained weights. Each function returns a module in evaluation mode on the
device, and its inputs, by position: Dynamo of 2.4 takes no keywords for a torch.nn.Sequential.
Smoke scale keeps the architecture and shrinks sizes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from collections.abc import Callable

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
