"""What MkDocs calls while it builds one language. Thin: pages are made elsewhere, from plain values.

Files under docs/ are rendered by Jinja, sandboxed and strict, with the fragments as its only names.
Generated pages are not: what is in them may come from a stranger.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

from reportkit.plan import PlanError
from reportkit.site import charts, comparisons, lanes, machines, notebooks
from reportkit.site.edition import Edition, load_edition
from reportkit.site.fragments import Fragments
from reportkit.site.markup import relative
from reportkit.site.pages import generated, objects
from reportkit.site.texts import LANGUAGES, Texts

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

VEGA = "assets/vega.js"


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Leave out the page for wrong addresses: it alone can't work below a path nobody has named yet."""
    config.theme.static_templates.discard("404.html")
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages and, for the language at the root, what all languages share."""
    edition, texts = _read(config)
    above = texts.above
    pages = generated(edition, texts, above, config.site_name)
    for source in (lanes, comparisons, machines):
        pages += source.generated(edition, texts, above)
    for page in pages:
        files.append(File.generated(config, page.path, content=page.text))
    if not above:
        files.append(File.generated(config, VEGA, content=charts.bundle()))
        for one in objects(edition):
            files.append(File.generated(config, one.path, content=one.text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 -- MkDocs' names
    """Fill the numbers and charts into a page from docs/; a generated page and a notebook stay as they are."""
    if page.file.generated_by is not None or page.file.src_uri.startswith(notebooks.FOLDER):
        return markdown
    edition, texts = _read(config)
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined,
        autoescape=False,
        comment_start_string="{%#",  # Jinja's own would end at a heading's {#id}.
        comment_end_string="#%}",
    )
    environment.globals = dict(Fragments(edition, texts, page.file.src_uri).names())
    try:
        return environment.from_string(markdown).render()
    except (TemplateError, PlanError, TypeError) as error:
        shown = Path(config.docs_dir).relative_to(edition.project) / page.file.src_uri
        message = f"{shown.as_posix()}: {error}"
        raise PluginError(message) from error


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 -- MkDocs' names
    """Leave of a notebook's page what is the site's own to show."""
    return notebooks.page(html, page.toc) if page.file.src_uri.startswith(notebooks.FOLDER) else html


def on_page_context(context: dict[str, object], page: Page, config: MkDocsConfig, nav: object) -> dict[str, object]:  # noqa: ARG001 -- MkDocs' names
    """Tell the templates where the page's twin is, and whether the page has a chart."""
    language = config.theme["language"]
    other = next(one for one in LANGUAGES if one != language)
    above, root = ("", f"{other}/") if language == LANGUAGES[0] else ("../", "../")
    context["twin"] = relative(page.url, f"{root}{page.url}")
    context["twin_language"] = other
    context["vega"] = relative(page.url, f"{above}{VEGA}") if 'class="rk-chart"' in (page.content or "") else ""
    return context


def _read(config: MkDocsConfig) -> tuple[Edition, Texts]:
    edition = load_edition(Path(config.config_file_path or "mkdocs.yml").resolve().parent)
    return edition, edition.texts[config.theme["language"]]
