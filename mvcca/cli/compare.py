"""`mvcca compare`: views and labels in the user's files, made into a case."""

from __future__ import annotations

from argparse import Namespace

from mvcca.cli.case import Case, split
from mvcca.cli.errors import CommandError
from mvcca.cli.inputs import read_inputs, read_view
from mvcca.cli.labels import Labels
from mvcca.cli.session import run_cases
from mvcca.views import Views

__all__ = ["run"]


def run(options: Namespace) -> None:
    """Run the command."""
    views, labels = read_inputs(options.views, options.labels, read_view)
    run_cases([_case(views, labels, options)], options, options.n_components)


def _case(views: Views, labels: Labels | None, options: Namespace) -> Case:
    try:
        train, test = split(views, options.test_size, options.seed)
    except ValueError as error:
        raise CommandError(f"--test-size {options.test_size}: {error}") from error
    own = (None, None) if labels is None else (labels[train], labels[test])
    return Case(
        " and ".join(views.names),
        views[train],
        views[test],
        {} if own[0] is None else {"labels": own[0]},
        *own,
    )
