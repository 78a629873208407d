"""The check of links finds what is wrong, and nothing else."""

import tempfile
import unittest
from pathlib import Path

import check

INDEX = '<meta http-equiv="refresh" content="0; url=docs/a.html">'


class Faults(unittest.TestCase):
    def found(self, page: str, **others: str) -> list[str]:
        """What is wrong with a site of an index, `docs/a.html` and others."""
        with tempfile.TemporaryDirectory() as folder:
            site = Path(folder).resolve()
            (site / "docs").mkdir()
            (site / "index.html").write_text(INDEX)
            (site / "docs/a.html").write_text(page)
            (site / "docs/a file.svg").write_text("<svg/>")
            for name, text in others.items():
                (site / "docs" / f"{name}.html").write_text(text)
            return check.faults(site)

    def test_a_sound_site_has_none(self) -> None:
        page = '<a href="b.html#there">b</a> <a href="https://example.org/x">out</a> <img src="a%20file.svg"> <a href="#">top</a>'
        self.assertEqual(self.found(page, b='<h2 id="there">b</h2> <a href="a.html">a</a>'), [])

    def test_links_that_lead_nowhere(self) -> None:
        for link, fault in [
            ("b.html", "no such file"),
            ("#nowhere", "no such anchor"),
            ("../../x.html", "outside of the site"),
            ("https:///x", "an address without a host"),
            ("javascript:x()", "javascript is not for a site"),
        ]:
            self.assertEqual(self.found(f'<a href="{link}">x</a>'), [f"docs/a.html: {link}: {fault}"])

    def test_a_page_that_nothing_links_to(self) -> None:
        self.assertEqual(self.found("<p>", b='<a href="a.html">a</a>'), ["docs/b.html: no page links to it"])

    def test_what_is_fetched_from_another_host(self) -> None:
        for tag in ['<script src="{}"></script>', '<link rel="stylesheet" href="{}">', '<img src="{}">']:
            address = "https://example.org/x"
            self.assertEqual(self.found(tag.format(address)), [f"docs/a.html: it fetches {address}"])


if __name__ == "__main__":
    unittest.main()
