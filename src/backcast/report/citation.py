"""How to cite Backcast and the paper that it implements: `backcast cite`."""

from typing import NamedTuple

from backcast import __version__


class Work(NamedTuple):
    """Something to cite.

    Attributes:
        key: its name in a BibTeX file.
        entry: its BibTeX type.
        authors: (given names, family name) of each; a group has no given names.
        title: its title.
        year: of publication, or empty.
        fields: further BibTeX fields, in their order.
        place: where it appeared, in words.
    """

    key: str
    entry: str
    authors: tuple[tuple[str, str], ...]
    title: str
    year: str
    fields: tuple[tuple[str, str], ...]
    place: str

    def as_bibtex(self) -> str:
        """The work as a BibTeX entry."""
        names = [f"{family}, {given}" if given else f"{{{family}}}" for given, family in self.authors]
        given = (("author", " and ".join(names)), ("title", f"{{{self.title}}}"), ("year", self.year), *self.fields)
        lines = [f"  {name:<13} = {{{value}}}," for name, value in given if value]
        return "\n".join([f"@{self.entry}{{{self.key},", *lines, "}"])

    def as_text(self) -> str:
        """The work as a line of a list of references."""
        names = [f"{given} {family}".strip() for given, family in self.authors]
        who = names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
        return f"{who}{f' ({self.year})' if self.year else ''}. {self.title}. {self.place}."


BACKCAST = Work(
    key="backcast",
    entry="software",
    authors=(("", "The Backcast authors"),),
    title="Backcast: credit assignment by planning, forward and backward",
    year="2026",
    fields=(("version", __version__), ("license", "Apache-2.0")),
    place=f"Python package, version {__version__}",
)
PAPER = Work(
    key="chelu2020forethought",
    entry="inproceedings",
    authors=(("Veronica", "Chelu"), ("Doina", "Precup"), ("Hado", "van Hasselt")),
    title="Forethought and Hindsight in Credit Assignment",
    year="2020",
    fields=(
        ("booktitle", "Advances in Neural Information Processing Systems"),
        ("volume", "33"),
        ("eprint", "2010.13685"),
        ("archivePrefix", "arXiv"),
    ),
    place="Advances in Neural Information Processing Systems 33. arXiv:2010.13685",
)
WORKS = (BACKCAST, PAPER)


def bibtex() -> str:
    """BibTeX entries of Backcast and of the paper."""
    return "\n\n".join(work.as_bibtex() for work in WORKS)


def references() -> str:
    """Backcast and the paper as plain text, a line each."""
    return "\n".join(work.as_text() for work in WORKS)
