"""The commands: a line on what each is for, examples, the notes below its help, and its options."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import NamedTuple

from mvcca.cli import notes, options

_VIEWS = "--view image=image.npy --view text=text.npy"
_TABLES = "--view brain=brain.csv --view tests=tests.csv --id subject"
_SEARCH = "search model.mvcca --gallery image=image.npy --query text=text.npy -k 5"
SESSION = [f"compare {_VIEWS}", f"fit {_VIEWS} --method cca -o model.mvcca", _SEARCH]


class Command(NamedTuple):
    """A command; the module of its name has the function ``run``."""

    summary: str
    examples: list[str]
    add_options: Callable[[ArgumentParser], None] = lambda _: None
    notes: str | None = None


GROUPS = {
    "to begin with": {
        "demo": Command(
            "compare methods on handwritten digits",
            ["demo", "demo --parts halves --methods cca,ncca --no-report"],
            options.add_to_demo,
        ),
        "methods": Command("list all methods", ["methods"]),
    },
    "compare methods, fit one, and search": {
        "compare": Command(
            "compare methods on data in files",
            [
                f"compare {_VIEWS} --labels y.npy",
                f"compare {_TABLES}",
                f"compare {_VIEWS} --methods cca,nkcca --reg 0.01 0.1 1 --report report.html",
            ],
            options.add_to_compare,
            notes.FILES,
        ),
        "fit": Command(
            "fit a method to views in files and save the model",
            [
                f"fit {_VIEWS} --method cca -o model.mvcca",
                f"fit {_TABLES} --method cca -o m.mvcca",
                f"fit {_VIEWS} --method cca --param n_components=10 -o model.mvcca",
            ],
            options.add_to_fit,
            notes.FILES,
        ),
        "search": Command(
            "find the best items of one view for queries in another",
            [
                _SEARCH,
                "search m.mvcca --gallery brain=brain.csv --query tests=tests.csv --id subject",
            ],
            options.add_to_search,
            notes.SEARCH,
        ),
        "transform": Command(
            "project rows in files into the shared space",
            [f"transform model.mvcca {_VIEWS} -o 'scores-{{view}}.npy'"],
            options.add_to_transform,
            notes.TRANSFORM,
        ),
        "info": Command(
            "describe a model file",
            ["info model.mvcca", "info model.mvcca --json"],
            options.add_to_info,
        ),
    },
    "ask other questions": {
        "test": Command(
            "test whether correlations of two tables are real",
            [
                "test brain.csv behaviour.csv --report report.html",
                "test brain.csv behaviour.csv --id subject --confounds c.csv --groups family",
            ],
            options.add_to_test,
            notes.TEST,
        ),
        "align": Command(
            "align two sets of vectors by few known pairs or none",
            [
                "align english.npy german.npy --pairs pairs.csv -o model.mvcca",
                "align english.npy german.npy -o model.mvcca",
            ],
            options.add_to_align,
            notes.ALIGN,
        ),
        "migrate": Command(
            "map stored vectors or queries between an old and a new model",
            [
                "migrate old.npy new.npy --sample rows.npy -o migrated.npy",
                "migrate old.npy new.npy --sample rows.npy --direction queries -o queries.mvcca",
            ],
            options.add_to_migrate,
            notes.MIGRATE,
        ),
        "similarity": Command(
            "compare layers of networks: how alike are their representations?",
            [
                "similarity layers/",
                "similarity first_network/ --other second_network/ --plot similarity.png",
            ],
            options.add_to_similarity,
            notes.SIMILARITY,
        ),
    },
    "your shell": {
        "completion": Command(
            "print a script for completion in a shell",
            [
                "completion bash > ~/.local/share/bash-completion/completions/mvcca",
                "completion zsh > ~/.zfunc/_mvcca",
                "completion fish > ~/.config/fish/completions/mvcca.fish",
            ],
            options.add_to_completion,
        )
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
