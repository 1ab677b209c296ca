"""The commands: what each is for, its options, the notes below its help, and examples."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import NamedTuple

from mvcca.cli import notes, options

_VIEWS = "--view image=image.npy --view text=text.npy"
_TABLES = "--view brain=brain.csv --view tests=tests.csv --id subject"
_MODEL = "--method cca -o model.mvcca"
_SEARCH = "search model.mvcca --gallery image=image.npy --query text=text.npy -k 5"
SESSION = f"compare {_VIEWS}\nfit {_VIEWS} {_MODEL}\n{_SEARCH}"


class Command(NamedTuple):
    """A command; the module of its name has the function ``run``."""

    summary: str
    add_options: Callable[[ArgumentParser], None]
    notes: str | None
    examples: str  # one per line


GROUPS: dict[str, dict[str, Command]] = {
    "to begin with": {
        "demo": Command(
            "compare methods on handwritten digits",
            options.add_to_demo,
            None,
            "demo\ndemo --parts halves --methods cca,ncca --no-report",
        ),
        "methods": Command("list all methods", lambda _: None, None, "methods"),
    },
    "compare methods, fit one, and search": {
        "compare": Command(
            "compare methods on data in files",
            options.add_to_compare,
            notes.FILES,
            f"""compare {_VIEWS} --labels y.npy
compare {_TABLES}
compare {_VIEWS} --methods cca,nkcca --reg 0.01 0.1 1 --report report.html""",
        ),
        "fit": Command(
            "fit a method to views in files and save the model",
            options.add_to_fit,
            notes.FILES,
            f"""fit {_VIEWS} {_MODEL}
fit {_TABLES} --method cca -o m.mvcca
fit {_VIEWS} --method cca --param n_components=10 -o model.mvcca""",
        ),
        "search": Command(
            "find the best items of one view for queries in another",
            options.add_to_search,
            notes.SEARCH,
            f"""{_SEARCH}
search m.mvcca --gallery brain=brain.csv --query tests=tests.csv --id subject""",
        ),
        "transform": Command(
            "project rows in files into the shared space",
            options.add_to_transform,
            notes.TRANSFORM,
            f"transform model.mvcca {_VIEWS} -o 'scores-{{view}}.npy'",
        ),
        "info": Command(
            "describe a model file",
            options.add_to_info,
            None,
            "info model.mvcca\ninfo model.mvcca --json",
        ),
    },
    "ask other questions": {
        "test": Command(
            "test whether correlations of two tables are real",
            options.add_to_test,
            notes.TEST,
            """test brain.csv behaviour.csv --report report.html
test brain.csv behaviour.csv --id subject --confounds c.csv --groups family""",
        ),
        "align": Command(
            "align two sets of vectors by few known pairs or none",
            options.add_to_align,
            notes.ALIGN,
            """align english.npy german.npy --pairs pairs.csv -o model.mvcca
align english.npy german.npy -o model.mvcca""",
        ),
        "migrate": Command(
            "map stored vectors or queries between an old and a new model",
            options.add_to_migrate,
            notes.MIGRATE,
            """migrate old.npy new.npy --sample rows.npy -o migrated.npy
migrate old.npy new.npy --sample rows.npy --direction queries -o queries.mvcca""",
        ),
        "similarity": Command(
            "compare layers of networks: how alike are their representations?",
            options.add_to_similarity,
            notes.SIMILARITY,
            """similarity layers/
similarity first_network/ --other second_network/ --plot similarity.png""",
        ),
    },
    "your shell": {
        "completion": Command(
            "print a script for completion in a shell",
            options.add_to_completion,
            None,
            """completion bash > ~/.local/share/bash-completion/completions/mvcca
completion zsh > ~/.zfunc/_mvcca
completion fish > ~/.config/fish/completions/mvcca.fish""",
        ),
    },
}
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
