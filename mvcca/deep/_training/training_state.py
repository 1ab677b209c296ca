"""State of a finished training, from which another trainer resumes if it still fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from torch import Tensor

from mvcca.deep._training.identity import identity

if TYPE_CHECKING:
    from mvcca.deep.trainer import Trainer

_GROUP_KEYS = {"learning_rate": "lr", "weight_decay": "weight_decay"}  # parameter: torch's name


@dataclass(frozen=True, eq=False)
class TrainingState:
    """State from which `partial_fit` resumes."""

    parameters: dict[str, str]  # at the end of training, as `identity` texts
    optimizer: str  # name of its class, or of several
    tree: dict[str, Any]  # the trainer's `state_dict`, on the CPU

    @classmethod
    def of(cls, trainer: Trainer, parameters: Mapping[str, Any]) -> Self:
        """The state of a trainer after training."""
        return cls(
            {name: identity(value) for name, value in parameters.items()},
            _optimizers_of(trainer),
            # partial_fit has no validation rows, and so no best epoch to return to.
            {**trainer.state_dict(), "best": None},
        )

    def resume(self, trainer: Trainer, parameters: Mapping[str, Any]) -> None:
        """Load the state into a new trainer, except learning rate and weight decay if changed."""
        texts = {name: identity(value) for name, value in parameters.items()}
        changed = [name for name, text in texts.items() if text != self.parameters.get(name)]
        shapes = [_shapes(module.state_dict()) for module in trainer.modules]
        if (
            shapes != [_shapes(state) for state in self.tree["modules"]]
            or _optimizers_of(trainer) != self.optimizer
        ):
            raise ValueError(
                "partial_fit continues with the trained networks and their optimizer, which no "
                f"longer match the parameters: {', '.join(changed) or 'encoders'} changed. Restore "
                "the earlier values, or start over with fit."
            )
        groups = [dict(group) for group in trainer.parameter_groups()]
        trainer.load_state_dict(self.tree)
        for group, new in zip(trainer.parameter_groups(), groups, strict=True):
            group |= {key: new[key] for name, key in _GROUP_KEYS.items() if name in changed}


def _optimizers_of(trainer: Trainer) -> str:
    return ", ".join(type(optimizer).__name__ for optimizer in trainer.step.optimizers)


def _shapes(state: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(part.shape) for name, part in state.items() if isinstance(part, Tensor)}
