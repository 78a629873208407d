"""Checks a built site: every link and anchor leads somewhere, every page is reached, nothing is fetched from elsewhere."""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: Attributes by which a page fetches something by itself; a link's `href` is followed by a reader.
FETCHED = {"src", "srcset", "poster", "data", "data-page"}
#: Relations of a `<link>` that fetch nothing.
NAMED = {"next", "prev", "index", "search", "canonical"}


class Page(HTMLParser):
    """The anchors of a page, and where it links to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.headings: list[str] = []
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if given.get(name)}
        if tag == "h1":
            self.headings.append(given.get("id", ""))
        for name, value in given.items():
            named = tag == "link" and given.get("rel", "") in NAMED
            if name in FETCHED or (tag == "link" and name == "href" and not named):
                self.fetched.append(value)
            elif name == "href":
                self.links.append(value)
        if tag == "meta" and given.get("http-equiv") == "refresh":
            self.links.append(given["content"].split("url=")[1])


def faults(site: Path) -> list[str]:
    """What is wrong, a line each."""
    pages = {path: Page(path.read_text()) for path in sorted(site.rglob("*.html"))}
    found, reached = [], {site / "index.html"}
    waiting = list(reached)
    while waiting:
        path = waiting.pop()
        for link in pages[path].links + pages[path].fetched:
            fault, target = follow(site, pages, path, link)
            if fault:
                found.append(f"{path.relative_to(site)}: {link}: {fault}")
            if target in pages and target not in reached:
                reached.add(target)
                waiting.append(target)
        outside = [link for link in pages[path].fetched if urlsplit(link).scheme not in ("", "data")]
        found += [f"{path.relative_to(site)}: it fetches {link}" for link in outside]
    found += [f"{path.relative_to(site)}: no page links to it" for path in pages if path not in reached]
    return sorted(set(found))


def follow(site: Path, pages: dict[Path, Page], path: Path, link: str) -> tuple[str, Path | None]:
    """What is wrong with a link of a page, if anything, and the file that it leads to."""
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return ("" if "." in parts.netloc else "an address without a host"), None
    if parts.scheme in ("data", "mailto"):
        return "", None
    if parts.scheme or parts.netloc:
        return f"{parts.scheme or 'the address'} is not for a site", None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_relative_to(site):
        return "outside of the site", None
    if not target.is_file():
        return "no such file", None
    # The playground's fragment is a scenario.
    is_scenario = target.parent.name == "playground"
    if parts.fragment and target in pages and not is_scenario and unquote(parts.fragment) not in pages[target].anchors:
        return "no such anchor", target
    return "", target


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    found = faults(site)
    print("\n".join(found) or f"all links of {sum(1 for _ in site.rglob('*.html'))} pages lead somewhere", file=sys.stderr if found else sys.stdout)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
