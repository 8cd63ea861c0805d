"""The models and inputs that sections share, and how they are called: real architectures, random seeded weights.

Speed does not depend on trained weights. Each function returns a module in evaluation mode on the
device, and its inputs, by position: Dynamo of 2.4 takes no keywords for a torch.nn.Sequential.
Smoke scale keeps the architecture and shrinks sizes.
"""

from __future__ import annotations

import itertools
import random
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


def resnet50_settled(here: Here, *, batch: int = 64) -> tuple[nn.Module, Inputs]:
    """ResNet-50 as `resnet50` makes it, its batch norms knowing these images: else fp16 has few digits left at its end.

    The control of section 0, where nothing is compiled, does without.
    """
    model, (images,) = resnet50(here, batch=batch)
    return _settled(model, images), (images,)


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


def narrow_product(here: Here) -> tuple[nn.Module, Inputs]:
    """A product of 32 rows and a square matrix of 2048 in fp16: a search leaves out the candidates for more rows.

    To compile those for 2048 rows takes two minutes.
    """
    torch.manual_seed(SEED)
    return _square(2048).to(here.device, torch.float16), (torch.randn(32, 2048).to(here.device, torch.float16),)


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


def denoised(model: Callable[..., Any], inputs: Inputs) -> Callable[[], Any]:
    """Return the call that takes latents through all steps, without gradients."""
    return quiet(denoising(model), inputs)


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
    # The generator is a CPU's, whatever device a caller makes its tensors on.
    order = torch.randperm(len(numbers), generator=generator, device="cpu")
    return [numbers[index] for index in order.tolist()]


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


def mlp(here: Here, *, batch: int = 256) -> tuple[nn.Module, Inputs]:
    """Four times a linear layer of 1024, a GELU and a layer norm, on `batch` rows (smoke: of 128, 16 rows)."""
    torch.manual_seed(SEED)
    width, batch = (1024, batch) if here.scale == "full" else (128, 16)
    layers = [layer for _ in range(4) for layer in (nn.Linear(width, width), nn.GELU(), nn.LayerNorm(width))]
    return nn.Sequential(*layers).eval().to(here.device), (torch.randn(batch, width).to(here.device),)


def bert_positions(here: Here, positions: int, lengths: Sequence[int]) -> tuple[nn.Module, list[Inputs]]:
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


def sides(
    model: nn.Module,
    inputs: Inputs,
    tolerance: float,
    *,
    compiled: Callable[..., Any] | None = None,
    run: Callable[[Any, Inputs], Callable[[], Any]] = quiet,
) -> Sides:
    """Return a model's call on its inputs, eager and compiled, sharing weights.

    `compiled` may be what else was made of the model; `run` returns the call of a model on inputs. The compiled model
    is not called yet, and the fp64 copy not made.
    """

    def reference() -> object:
        return run(*double(model, inputs))()

    return Sides(
        eager=run(model, inputs),
        compiled=run(torch.compile(model) if compiled is None else compiled, inputs),
        reference=reference,
        tolerance=tolerance,
        inputs=inputs,
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


def whole(model: Callable[..., Any], inputs: Inputs) -> tuple[int | None, str]:
    """Compile a model, or a function, by `fullgraph=True`; return how many graphs it is, and in words.

    None stands for a refusal, which the words then tell. The backend is `aot_eager`. That Dynamo does not refuse is not
    enough: it may have captured nothing.

    Raises:
        RuntimeError: what was captured does not return what eager does.
    """
    from reportkit.bench import counters

    counters.reset()
    try:
        output = quiet(torch.compile(model, fullgraph=True, backend="aot_eager"), inputs)()
    except torch._dynamo.exc.TorchDynamoException as error:
        return None, told(error)
    graphs = counters.unique_graphs()
    if not alike(output, quiet(model, inputs)()):
        message = "what was captured does not return what eager does"
        raise RuntimeError(message)
    return graphs, f"{graphs} graph{'s' if graphs != 1 else ''}"


def told(error: BaseException) -> str:
    """Return an error's type and the first line of its message."""
    return f"{type(error).__name__}: {next(iter(str(error).strip().splitlines()), '')}"[:200]


def autocast(here: Here) -> torch.autocast:
    """Return autocast to fp16; on a CPU to bf16, its own half precision."""
    return torch.autocast(here.device, torch.float16 if here.device == "cuda" else torch.bfloat16)


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
    if name == "vit":
        return vit_b16(small)
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


class Branch(nn.Module):
    """An `if` that depends on the data."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Double what sums up to more than nothing, and lower the rest."""
        if bool(x.sum() > 0):
            return x * 2
        return x - 1


class Loop(nn.Module):
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


class Learner(nn.Module):
    """A network with its loss, as it is trained: returns the loss and what it was computed from."""

    def __init__(self, network: nn.Module) -> None:
        """Keep the network."""
        super().__init__()
        self.network = network

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return cross entropy and logits; the last input holds the classes."""
        *given, classes = inputs
        logits = self.network(*given)
        if not isinstance(logits, torch.Tensor):
            logits = logits.logits  # As transformers' models return them.
        return nn.functional.cross_entropy(logits, classes), logits


def resnet50_training(here: Here) -> tuple[nn.ModuleDict, Inputs]:
    """ResNet-50 in training mode with its loss; images as for `resnet50`, and a class for each."""
    model, (images,) = resnet50(here)
    classes = torch.randint(0, 1000, (len(images),)).to(here.device)
    return nn.ModuleDict({"learner": Learner(model)}).train(), (images, classes)


def bert_training(here: Here) -> tuple[nn.ModuleDict, Inputs]:
    """BERT-base in training mode as a classifier of two classes, with its loss; tokens as for `bert_base`.

    Dropout is computed and drops nothing, as in PyTorch's benchmarks: eager and compiled code draw other
    numbers from one seed, and gradients could not be compared.
    """
    from transformers import BertForSequenceClassification

    bert, (tokens, mask) = bert_base(here)
    for name, value in bert.config.to_dict().items():
        if "drop" in name and isinstance(value, float):
            setattr(bert.config, name, 1e-30)
    model = BertForSequenceClassification(bert.config).to(here.device)
    classes = torch.randint(0, 2, (len(tokens),)).to(here.device)
    return nn.ModuleDict({"learner": Learner(model)}).train(), (tokens, mask, classes)


class Critic(nn.Module):
    """The discriminator of a DCGAN with its loss."""

    def __init__(self, features: int) -> None:
        """Make the layers: 64 px down to one number."""
        super().__init__()
        widths = (features, features * 2, features * 4, features * 8)
        layers: list[nn.Module] = [nn.Conv2d(3, features, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)]
        for before, after in itertools.pairwise(widths):
            layers += [nn.Conv2d(before, after, 4, 2, 1, bias=False), nn.BatchNorm2d(after), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, nn.Conv2d(features * 8, 1, 4, 1, 0, bias=False))

    def forward(self, images: torch.Tensor, truth: torch.Tensor) -> torch.Tensor:
        """Return how far it is from taking images for what `truth` says: 1 real, 0 made."""
        return nn.functional.binary_cross_entropy_with_logits(self.layers(images).flatten(), truth)


def _generator(features: int) -> nn.Module:
    """Return the generator of a DCGAN: 100 numbers up to 3 x 64 x 64."""
    widths = (features * 8, features * 4, features * 2, features)
    layers: list[nn.Module] = [nn.ConvTranspose2d(100, features * 8, 4, 1, 0, bias=False)]
    for before, after in itertools.pairwise(widths):
        layers += [nn.BatchNorm2d(before), nn.ReLU(), nn.ConvTranspose2d(before, after, 4, 2, 1, bias=False)]
    return nn.Sequential(
        *layers, nn.BatchNorm2d(features), nn.ReLU(), nn.ConvTranspose2d(features, 3, 4, 2, 1, bias=False), nn.Tanh()
    )


def dcgan_training(here: Here) -> tuple[nn.ModuleDict, Inputs]:
    """A DCGAN of 64 features at 64 px in training mode: 64 images and noises, and what is true of either (smoke: 8, 4).

    The noise is drawn once, so that every step is the same work.
    """
    torch.manual_seed(SEED)
    features, batch = (64, 64) if here.scale == "full" else (8, 4)
    model = nn.ModuleDict({"critic": Critic(features), "generator": _generator(features)})
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d):
            nn.init.normal_(layer.weight, 0.0, 0.02)
    images, noise = torch.rand(batch, 3, 64, 64) * 2 - 1, torch.randn(batch, 100, 1, 1)
    inputs = (images, noise, torch.ones(batch), torch.zeros(batch))
    return model.train().to(here.device), tuple(tensor.to(here.device) for tensor in inputs)


class Expert(nn.Module):
    """Two linear layers around a GELU."""

    def __init__(self, width: int, inner: int) -> None:
        """Make the layers: `width` to `inner` and back."""
        super().__init__()
        self.up, self.activation, self.down = nn.Linear(width, inner), nn.GELU(), nn.Linear(inner, width)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return as many numbers a token as it was given."""
        result: torch.Tensor = self.down(self.activation(self.up(tokens)))
        return result


class Mixture(nn.Module):
    """A mixture of experts: a router sends each token to the two that it scores highest."""

    def __init__(self, experts: int, width: int, inner: int) -> None:
        """Make router and experts."""
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(Expert(width, inner) for _ in range(experts))

    def choose(self, tokens: torch.Tensor) -> torch.Tensor:
        """Return the two experts of each token, the higher score first."""
        return self.router(tokens).topk(2).indices

    def forward(self, tokens: torch.Tensor, chosen: torch.Tensor | None = None) -> torch.Tensor:
        """Return each token's experts' results, weighted; `chosen` routes in the router's place."""
        scores = self.router(tokens)
        if chosen is None:
            chosen = scores.topk(2).indices
        weights = scores.softmax(-1).gather(-1, chosen)
        result = torch.zeros_like(tokens)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(chosen == number)
            result.index_add_(0, token, expert(tokens[token]) * weights[token, place].unsqueeze(-1))
        return result


def _tokens(here: Here) -> tuple[int, int, torch.Tensor]:
    """Return width and inner width of an expert, and 4096 tokens (smoke: 32, 64, and 64 tokens)."""
    torch.manual_seed(SEED)
    width, inner, number = (1024, 4096, 4096) if here.scale == "full" else (32, 64, 64)
    return width, inner, torch.randn(number, width).to(here.device)


def mixture(here: Here) -> tuple[nn.Module, Inputs]:
    """A mixture of 8 experts, 1024 to 4096 to 1024, in fp16 on a GPU, and 4096 tokens; two experts a token."""
    width, inner, tokens = _tokens(here)
    return half(Mixture(8, width, inner).eval().to(here.device), (tokens,), here)


def dense(here: Here) -> tuple[nn.Module, Inputs]:
    """One expert of twice the inner width for all tokens: as many products of numbers as the mixture's."""
    width, inner, tokens = _tokens(here)
    return half(Expert(width, 2 * inner).eval().to(here.device), (tokens,), here)


Tree = Any
"""A leaf, which is a tensor of one row, or a pair of trees."""


class TreeCell(nn.Module):
    """The cell of a binary Tree-LSTM (Tai, Socher and Manning, 2015)."""

    def __init__(self, units: int) -> None:
        """Make the layer behind its five gates."""
        super().__init__()
        self.gates = nn.Linear(2 * units, 5 * units)

    def forward(self, left: Inputs, right: Inputs) -> Inputs:
        """Return output and memory of a node from those of its two parts."""
        enter, keep_left, keep_right, leave, new = self.gates(torch.cat((left[0], right[0]), -1)).chunk(5, -1)
        memory = enter.sigmoid() * new.tanh() + keep_left.sigmoid() * left[1] + keep_right.sigmoid() * right[1]
        return leave.sigmoid() * memory.tanh(), memory


class Recursive(nn.Module):
    """A cell that is applied up a tree, by recursion."""

    def __init__(self, units: int) -> None:
        """Make the cell."""
        super().__init__()
        self.cell = TreeCell(units)

    def forward(self, tree: Tree) -> Inputs:
        """Return output and memory of the tree's root."""
        if isinstance(tree, torch.Tensor):
            return tree, torch.zeros_like(tree)
        result: Inputs = self.cell(self(tree[0]), self(tree[1]))
        return result


def trees(here: Here) -> tuple[nn.Module, tuple[Tree, ...]]:
    """A recursive network of 256 units and 64 random trees of 4 to 12 leaves (smoke: 32 units, 6 trees of 2 or 3)."""
    torch.manual_seed(SEED)
    chance = random.Random(SEED)  # noqa: S311 -- the same trees every time, no secret
    units, number, fewest, most = (256, 64, 4, 12) if here.scale == "full" else (32, 6, 2, 3)

    def grown(leaves: int) -> Tree:
        if leaves == 1:
            return torch.randn(1, units).to(here.device)
        left = chance.randint(1, leaves - 1)
        return grown(left), grown(leaves - left)

    stream = tuple(grown(chance.randint(fewest, most)) for _ in range(number))
    return Recursive(units).eval().to(here.device), stream


class Readout(nn.Module):
    """What a recurrent network ends in: the mean over time, and the logarithms of ten classes' probabilities."""

    def __init__(self, units: int) -> None:
        """Make the layer."""
        super().__init__()
        self.classes = nn.Linear(units, 10)

    def forward(self, steps: torch.Tensor) -> torch.Tensor:
        """Return ten numbers a sequence."""
        return nn.functional.log_softmax(self.classes(steps.mean(1)), -1)


class Recurrent(nn.Module):
    """An LSTM and its readout.

    Dynamo leaves `torch.nn.LSTM` alone, and on 2.4 and 2.5 the whole function that holds one: the readout is a module
    of its own, so that something is compiled.
    """

    def __init__(self, units: int) -> None:
        """Make two layers."""
        super().__init__()
        self.layers = nn.LSTM(units, units, num_layers=2, batch_first=True)
        self.readout = Readout(units)

    def forward(self, sequences: torch.Tensor) -> torch.Tensor:
        """Return ten numbers a sequence."""
        result: torch.Tensor = self.readout(self.layers(sequences)[0])
        return result


def lstm(here: Here) -> tuple[nn.Module, Inputs]:
    """An LSTM of 2 layers of 512 with a readout, on 32 sequences of length 64 (smoke: layers of 32, 2 of length 8)."""
    torch.manual_seed(SEED)
    units, batch, length = (512, 32, 64) if here.scale == "full" else (32, 2, 8)
    return Recurrent(units).eval().to(here.device), (torch.randn(batch, length, units).to(here.device),)


GELU_SCALE = 1.5
"""The factor of the scaled GELU."""


def scaled_gelu(numbers: torch.Tensor) -> torch.Tensor:
    """The scaled GELU in PyTorch's own operators."""
    return GELU_SCALE * nn.functional.gelu(numbers)


class Chain(nn.Module):
    """Elementwise operators with a scaled GELU in their middle."""

    def __init__(self, gelu: Callable[[torch.Tensor], torch.Tensor]) -> None:
        """Keep the function that computes the GELU."""
        super().__init__()
        self.gelu = gelu

    def forward(self, numbers: torch.Tensor) -> torch.Tensor:
        """Return as many numbers, each made of the one at its place."""
        middle = self.gelu(torch.sin(numbers) * numbers + 0.5)
        return torch.cos(middle) * middle + numbers


def chain(
    here: Here, gelu: Callable[[torch.Tensor], torch.Tensor] = scaled_gelu
) -> tuple[nn.Module, tuple[torch.Tensor]]:
    """A chain of elementwise operators with a GELU in it, on 8192 x 4096 numbers in fp32 (smoke: 64 x 64)."""
    torch.manual_seed(SEED)
    rows, columns = (8192, 4096) if here.scale == "full" else (64, 64)
    return Chain(gelu).eval(), (torch.randn(rows, columns).to(here.device),)
