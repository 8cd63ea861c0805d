"""An article of workloads that behave badly, each in its own way; the harness may not."""

from experiments import section
from reportkit.plan import Article

ARTICLE = Article(id="toy", lane="toy", machines=(), sections=(section.SECTION,))
