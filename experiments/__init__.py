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
    families={
        "inference": ("table", "amp"),
        "varying-shapes": ("stream", "lengths"),
        "generation": ("generate",),
        "training": ("training",),
        "hard-to-capture": ("recursive", "moe"),
    },
)
