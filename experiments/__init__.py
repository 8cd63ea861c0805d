"""The article under check: does `torch.compile` make PyTorch faster? Its sections, in reading order."""

from experiments import advice, benchmarks, controls, eager, ecosystem, inductor, limits, outlook, questions
from reportkit.plan import Article

ARTICLE = Article(
    id="torch-compile",
    lane="2.5",
    machines=("nvidia-h200",),
    preload=(
        "torchvision",
        "transformers.models.bert.modeling_bert",
        "transformers.models.gpt2.modeling_gpt2",
        "transformers.models.llama.modeling_llama",
        "diffusers.models.unets.unet_2d_condition",
    ),
    sections=(
        controls.SECTION,
        eager.SECTION,
        ecosystem.SECTION,
        inductor.SECTION,
        benchmarks.SECTION,
        questions.SECTION,
        limits.SECTION,
        outlook.SECTION,
        advice.SECTION,
    ),
    anchors="anchors",
    # A lane at full scale takes two sittings (docs/en/decisions/0006-two-sittings.md); what comes last is cut first.
    first=("benchmarks", "questions", "same", "repeats"),
    last=(
        "generate.llama-static-h-cold-1",
        "generate.llama-graphs-h-cold-1",
        "again",
        "modes.max-autotune-resnet50-h-cold-2",
        "modes.max-autotune-resnet50-h-cold-3",
    ),
    families={
        "inference": ("table", "amp"),
        "varying-shapes": ("stream", "lengths"),
        "generation": ("generate",),
        "training": ("training",),
        "hard-to-capture": ("recursive", "moe"),
    },
)
