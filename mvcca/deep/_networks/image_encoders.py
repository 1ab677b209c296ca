"""Convolutional networks for views whose rows are images, flattened row by row."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from mvcca.deep._networks.weights import convolution_2d, linear


def cnn(
    shape: tuple[int, int, int],
    n_components: int,
    *,
    channels: Sequence[int] = (32, 64),
    hidden_layer_sizes: Sequence[int] = (256,),
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """Small convolutional network for flattened images.

    Each stage is convolution 3 x 3 → batch norm → ReLU → maximum of 2 x 2 pixels; then come fully
    connected layers and a batch norm of the output, as in `mlp`.

    For any other network on images, such as those of torchvision, use
    ``nn.Sequential(nn.Unflatten(1, shape), network)``.

    Parameters
    ----------
    shape : tuple (n_channels, height, width)
        Shape of an image; rows have n_channels x height x width features.
    n_components : int
        Width of the output.
    channels : sequence of int, default=(32, 64)
        Channels of each stage.
    hidden_layer_sizes : sequence of int, default=(256,)
        Widths of the hidden fully connected layers.
    generator : torch.Generator, optional
        Generator of the initial weights; by default torch's global one.

    Returns
    -------
    nn.Sequential
    """
    layers: list[nn.Module] = [nn.Unflatten(1, tuple(shape))]
    n_in, height, width = shape
    for n_out in channels:
        layers += [convolution_2d(n_in, n_out, 3, generator), nn.BatchNorm2d(n_out), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
        n_in, height, width = n_out, height // 2, width // 2
    if not height or not width:
        raise ValueError(
            f"An image of shape {tuple(shape)} is too small for {len(channels)} stages, each of "
            "which halves height and width. Give fewer channels."
        )
    layers.append(nn.Flatten())
    size = n_in * height * width
    for hidden in hidden_layer_sizes:
        layers += [linear(size, hidden, generator), nn.BatchNorm1d(hidden), nn.ReLU()]
        size = hidden
    layers += [linear(size, n_components, generator), nn.BatchNorm1d(n_components, affine=False)]
    return nn.Sequential(*layers)


def vgg(
    shape: tuple[int, int, int],
    n_components: int = 32,
    *,
    channels: Sequence[int] = (16, 32, 64, 64),
    generator: torch.Generator | None = None,
) -> nn.Sequential:
    """VGG-style network for sheet music (1 x 40 x 100) and spectrograms (1 x 136 x 100) [1]_.

    Each stage is twice (convolution 3 x 3 → batch norm → ELU) → maximum of 2 x 2 pixels; then a
    convolution 1 x 1 with n_components channels → batch norm → mean over all pixels.

    Parameters
    ----------
    shape : tuple (n_channels, height, width)
        Shape of an image; rows have n_channels x height x width features.
    n_components : int, default=32
        Width of the output.
    channels : sequence of int, default=(16, 32, 64, 64)
        Channels of each stage.
    generator : torch.Generator, optional
        Generator of the initial weights; by default torch's global one.

    Returns
    -------
    nn.Sequential

    References
    ----------
    .. [1] Dorfer et al., "End-to-End Cross-Modality Retrieval with CCA Projections and Pairwise
       Ranking Loss", 2018, table 7.
    """
    layers: list[nn.Module] = [nn.Unflatten(1, tuple(shape))]
    n_in = shape[0]
    if min(shape[1:]) < 2 ** len(channels):
        raise ValueError(
            f"An image of shape {tuple(shape)} is too small for {len(channels)} stages, each of "
            "which halves height and width. Give fewer channels."
        )
    for n_out in channels:
        for width in (n_in, n_out):
            layers += [convolution_2d(width, n_out, 3, generator), nn.BatchNorm2d(n_out), nn.ELU()]
        layers.append(nn.MaxPool2d(2))
        n_in = n_out
    layers += [convolution_2d(n_in, n_components, 1, generator), nn.BatchNorm2d(n_components)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
