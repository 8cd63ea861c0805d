"""The models and inputs that sections share: real architectures, random seeded weights.

Speed does not depend on trained weights. Each function returns a module in evaluation mode on the
device, and its inputs, by position: Dynamo of 2.4 takes no keywords for a torch.nn.Sequential.
Smoke scale keeps the architecture and shrinks sizes.
"""

from __future__ import annotations

import itertools
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


def half(model: nn.Module, inputs: Inputs, here: Here) -> tuple[nn.Module, Inputs]:
    """Return model and inputs with their floating-point tensors in fp16; on a CPU, which is slow at it, as they are."""
    if here.device == "cpu":
        return model, inputs
    return model.half(), tuple(tensor.half() if tensor.is_floating_point() else tensor for tensor in inputs)


def mobilenet_v2(here: Here, *, batch: int = 1) -> tuple[nn.Module, Inputs]:
    """MobileNetV2 of torchvision on `batch` images, 3 x 224 x 224 (smoke: 64 x 64); small kernels, hard to keep fed."""
    from torchvision.models import MobileNetV2

    torch.manual_seed(SEED)
    side = 224 if here.scale == "full" else 64
    images = torch.randn(batch, 3, side, side).to(here.device)
    return _settled(MobileNetV2().to(here.device), images), (images,)


def _settled(model: nn.Module, images: torch.Tensor) -> nn.Module:
    """Return a model in evaluation mode whose batch norms know these images.

    As they come they let random weights shrink the numbers from layer to layer, and all results are right that are
    nearly zero.
    """
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.momentum = None  # Take the images' statistics as they are.
    with torch.no_grad():
        model.train()(images)
    return model.eval()


def resnet50_half(here: Here) -> tuple[nn.Module, Inputs]:
    """ResNet-50 with weights and images in fp16; in fp32 on a CPU, which is slow at fp16."""
    return half(*resnet50(here), here)


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


def mobilenet_v2_many(here: Here) -> tuple[nn.Module, Inputs]:
    """MobileNetV2 on as many images as the other vision models have: 64 (smoke: 2)."""
    return mobilenet_v2(here, batch=64 if here.scale == "full" else 2)


def vit_b16(here: Here, *, batch: int = 64) -> tuple[nn.Module, Inputs]:
    """ViT-B/16 of torchvision on `batch` images, 3 x 224 x 224 (smoke: two layers of 64, 2 x 3 x 64 x 64)."""
    from torchvision.models import VisionTransformer

    torch.manual_seed(SEED)
    full = here.scale == "full"
    side, batch = (224, batch) if full else (64, 2)
    layers, heads, width, inner = (12, 12, 768, 3072) if full else (2, 2, 64, 128)
    with torch.device(here.device):
        model = VisionTransformer(side, 16, layers, heads, width, inner)
        # Torchvision starts the last layer at zero: every result would be zero, and so would every error.
        nn.init.normal_(model.heads.head.weight, std=0.02)
        images = torch.randn(batch, 3, side, side)
    return model.eval(), (images,)


def unet(here: Here) -> tuple[nn.Module, Inputs]:
    """The UNet of Stable Diffusion 1.5 in diffusers: latents of one image, texts with and without the prompt, times.

    Latents are 4 x 64 x 64, texts 2 x 77 x 768, and there are four times (smoke: one level of 32, latents of 8 x 8,
    texts of 2 x 8 x 32). `denoising` runs it.
    """
    from diffusers import UNet2DConditionModel

    torch.manual_seed(SEED)
    full = here.scale == "full"
    side, words, width = (64, 77, 768) if full else (8, 8, 32)
    sizes: dict[str, Any] = {"sample_size": side, "cross_attention_dim": width}
    if not full:
        sizes |= {
            "block_out_channels": (32,),
            "down_block_types": ("CrossAttnDownBlock2D",),
            "up_block_types": ("CrossAttnUpBlock2D",),
            "layers_per_block": 1,
        }
    with torch.device(here.device):
        model = UNet2DConditionModel(**sizes)
        latents, texts = torch.randn(1, 4, side, side), torch.randn(2, words, width)
        times = torch.tensor([999, 749, 499, 249])
    return model.eval(), (latents, texts, times)


GUIDANCE = 7.5
"""How far a step goes towards the prompt; Stable Diffusion's usual one."""


def denoising(model: Callable[..., Any]) -> Callable[..., torch.Tensor]:
    """Return what takes latents through one step a time: the UNet on both texts at once, guidance, a plain step."""

    def steps(latents: torch.Tensor, texts: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        for time in times:
            noise = model(torch.cat([latents, latents]), time, texts, return_dict=False)[0]
            without, towards = noise.chunk(2)
            latents = latents - (without + GUIDANCE * (towards - without)) / len(times)
        return latents

    return steps


def cnn_stream(here: Here) -> tuple[nn.Module, Inputs]:
    """The CNN and a stream of square images, 16 at a time, in 16 sizes from 96 to 256 px (smoke: 2, 16 to 46)."""
    return _cnn(here, _sides(here))


def cnn_fixed(here: Here) -> tuple[nn.Module, Inputs]:
    """The CNN and as many images of one size, which has the mean area of the stream's."""
    sides = _sides(here)
    return _cnn(here, [round((sum(side**2 for side in sides) / len(sides)) ** 0.5)] * len(sides))


def _sides(here: Here) -> list[int]:
    """Return the stream's sizes in pixels: evenly spaced, in a mixed order."""
    least, most = (96, 256) if here.scale == "full" else (16, 46)
    return _shuffled([round(least + (most - least) * step / 15) for step in range(16)])


def _shuffled(numbers: list[int]) -> list[int]:
    """Return the numbers in an order that is the same each time."""
    generator = torch.Generator().manual_seed(SEED)
    return [numbers[index] for index in torch.randperm(len(numbers), generator=generator).tolist()]


def _cnn(here: Here, sides: list[int]) -> tuple[nn.Module, Inputs]:
    """Make six times a 3 x 3 convolution, batch norm and ReLU, of 64 to 256 channels (smoke: 8 to 32).

    They keep the image's size. A mean over each image follows, so that the results for all sizes can be kept.
    """
    torch.manual_seed(SEED)
    batch, width = (16, 64) if here.scale == "full" else (2, 8)
    layers: list[nn.Module] = []
    with torch.device(here.device):
        for before, after in itertools.pairwise((3, *(width * factor for factor in (1, 1, 2, 2, 4, 4)))):
            layers += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU()]
        model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        images = tuple(torch.randn(batch, 3, side, side) for side in sides)
    return _settled(model, images[0]), images


def bert_lengths(here: Here) -> tuple[nn.Module, Inputs]:
    """BERT-base with 1024 positions, and 32 texts of each of six lengths from 128 to 512 (smoke: 2 of 8 to 48).

    The lengths are evenly spaced, in a mixed order.
    """
    from transformers import BertConfig, BertModel

    torch.manual_seed(SEED)
    if here.scale == "full":
        config, batch, lengths = BertConfig(max_position_embeddings=1024), 32, [128, 205, 282, 358, 435, 512]
    else:
        config = BertConfig(hidden_size=64, num_hidden_layers=1, num_attention_heads=2, intermediate_size=128)
        batch, lengths = 2, [8, 16, 24, 32, 40, 48]
    with torch.device(here.device):
        model = BertModel(config)
        tokens = tuple(torch.randint(0, config.vocab_size, (batch, length)) for length in _shuffled(lengths))
    return model.eval(), tokens


def one_by_one(model: Callable[..., Any], inputs: Inputs) -> Callable[[], list[Any]]:
    """Return the call that runs a model on each of its inputs in turn, without gradients."""

    def call() -> list[Any]:
        with torch.no_grad():
            return [model(one) for one in inputs]

    return call


def gpt2_xl(here: Here) -> tuple[nn.Module, Inputs]:
    """GPT-2 XL of transformers, 1.5 billion weights in fp16, and a prompt of 128 tokens.

    Smoke: two layers of 64, 16 tokens; fp32 on a CPU, which is slow at fp16.
    """
    from transformers import GPT2Config, GPT2LMHeadModel

    full = GPT2Config(n_embd=1600, n_layer=48, n_head=25)
    tiny = GPT2Config(n_embd=64, n_layer=2, n_head=2, vocab_size=512, bos_token_id=511, eos_token_id=511)
    return _decoder(here, GPT2LMHeadModel, full if here.scale == "full" else tiny)


def llama(here: Here) -> tuple[nn.Module, Inputs]:
    """A decoder of Llama's kind in fp16, and a prompt as for `gpt2_xl`.

    Its layers are those of Llama 3.2 1B; with an output layer of its own it has 1.5 billion weights.
    """
    from transformers import LlamaConfig, LlamaForCausalLM

    full = LlamaConfig(
        vocab_size=128256,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=16,
        num_attention_heads=32,
        num_key_value_heads=8,
        rope_theta=500000.0,
    )
    tiny = LlamaConfig(
        vocab_size=512,
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return _decoder(here, LlamaForCausalLM, full if here.scale == "full" else tiny)


def _decoder(here: Here, kind: Any, config: Any) -> tuple[nn.Module, Inputs]:
    """Make a language model where it will run; 1.5 billion random numbers take a CPU half a minute."""
    torch.manual_seed(SEED)
    with torch.device(here.device):
        model = kind(config).eval()
        prompt = torch.randint(0, config.vocab_size, (1, 128 if here.scale == "full" else 16))
    return half(model, (prompt,), here)


NEW_TOKENS = 32
"""Tokens that are generated after the prompt."""


def generation(model: Any, prompt: torch.Tensor, **options: Any) -> Callable[[], torch.Tensor]:
    """Return the call that generates greedily: always so many tokens, whatever they are.

    It raises where there are more or fewer.
    """

    def call() -> torch.Tensor:
        tokens: torch.Tensor = _generate(model, prompt, **options)
        if tokens.shape != (1, prompt.shape[1] + NEW_TOKENS):
            message = f"{NEW_TOKENS} new tokens were asked for, and the result has the shape {tuple(tokens.shape)}"
            raise RuntimeError(message)
        return tokens

    return call


def teacher_forced(model: Any, prompt: torch.Tensor, **options: Any) -> Callable[[], torch.Tensor]:
    """Return the call that goes the same way through given tokens, and returns the logits at each of them.

    Generated tokens can't be compared: with random weights the two best are often as good as tied.
    """
    generator = torch.Generator().manual_seed(SEED)
    given = torch.randint(0, model.config.vocab_size, (NEW_TOKENS,), generator=generator).to(prompt.device)

    def given_next(tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Let nothing but the given token be chosen."""
        chosen = given[tokens.shape[1] - prompt.shape[1]]
        return torch.full_like(scores, -torch.inf).index_fill_(1, chosen, 0.0)

    def call() -> torch.Tensor:
        result = _generate(
            model,
            prompt,
            logits_processor=[given_next],
            output_logits=True,
            return_dict_in_generate=True,
            **options,
        )
        # The library returns fp32; each logit came in the model's own precision, by which errors are judged.
        return torch.cat(result.logits).to(model.dtype)

    return call


def _generate(model: Any, prompt: torch.Tensor, **options: Any) -> Any:
    return model.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        min_new_tokens=NEW_TOKENS,
        max_new_tokens=NEW_TOKENS,
        do_sample=False,
        pad_token_id=0,
        **options,
    )
