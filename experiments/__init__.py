"""The article under check: does `torch.compile` make PyTorch faster? Its sections, in reading order."""

from experiments import benchmarks, ecosystem, questions
from reportkit.plan import Article

ARTICLE = Article(
    id="torch-compile",
    lane="2.5",
    machines=("nvidia-h200",),
    preload=("torchvision", "transformers"),
    sections=(ecosystem.SECTION, benchmarks.SECTION, questions.SECTION),
)
