"""The article under check: does `torch.compile` make PyTorch faster? Its sections, in reading order."""

from experiments import benchmarks, controls, ecosystem, questions
from reportkit.plan import Article

ARTICLE = Article(
    id="torch-compile",
    lane="2.5",
    machines=("nvidia-h200",),
    preload=("transformers",),
    sections=(controls.SECTION, ecosystem.SECTION, benchmarks.SECTION, questions.SECTION),
    anchors="anchors",
)
