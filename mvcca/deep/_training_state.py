"""Where a training ended, kept so that another trainer can go on from there.

The state itself is the trainer's `state_dict`; here is what tells whether it still fits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

from mvcca.deep._identity import identity

if TYPE_CHECKING:
    from mvcca.deep.trainer import Trainer

_OF_GROUPS = {"learning_rate": "lr", "weight_decay": "weight_decay"}  # as optimisers name them


@dataclass(frozen=True, eq=False)
class TrainingState:
    """What `partial_fit` goes on from.

    Attributes
    ----------
    parameters : dict of str to str
        The estimator's parameters at that time, as `identity` tells them apart.
    optimizer : str
        Its class.
    tree : dict
        The trainer's state, on the CPU.
    """

    parameters: dict[str, str]
    optimizer: str
    tree: dict[str, Any]

    @classmethod
    def of(cls, trainer: Trainer, parameters: Mapping[str, Any]) -> Self:
        """Of a trainer that has ended."""
        return cls(
            {name: identity(value) for name, value in parameters.items()},
            type(trainer.optimizer).__name__,
            # What comes has no validation rows, so that there is no best epoch to go back to.
            {**trainer.state_dict(), "best": None},
        )

    def resume(self, trainer: Trainer, parameters: Mapping[str, Any]) -> None:
        """Let a new trainer go on from here; what parameters say by now takes effect.

        Raises
        ------
        ValueError
            If they ask for other networks, or another optimiser.
        """
        texts = {name: identity(value) for name, value in parameters.items()}
        changed = [name for name, text in texts.items() if text != self.parameters.get(name)]
        shapes = [_shapes(module.state_dict()) for module in trainer.modules]
        if (
            shapes != [_shapes(state) for state in self.tree["modules"]]
            or type(trainer.optimizer).__name__ != self.optimizer
        ):
            raise ValueError(
                "partial_fit goes on with networks and optimiser as training left them, which do "
                f"not fit the parameters any more: {', '.join(changed) or 'encoders'} changed in "
                "between. Set back what it was, or start over with fit."
            )
        groups = [dict(group) for group in trainer.optimizer.param_groups]
        trainer.load_state_dict(self.tree)
        for group, new in zip(trainer.optimizer.param_groups, groups, strict=True):
            group |= {key: new[key] for name, key in _OF_GROUPS.items() if name in changed}


def _shapes(state: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(part.shape) for name, part in state.items() if isinstance(part, Tensor)}
