"""
Deep CCA finds a relation that linear CCA cannot see: from tones to pictures
============================================================================

Each object has a picture of a spot, randomly bright or dark, and a tone of random phase. The
position of the spot and the pitch and time of the tone are given by the same two numbers. Because
spots of either sign, and all phases, are equally likely, no linear map of one view predicts the
other.
"""

# %%
# A higher spot has a tone of higher pitch, and a spot further to the right has a later tone.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from mvcca import CCA, RetrievalIndex, Views, evaluate_retrieval
from mvcca.deep import DCCA
from mvcca.deep.callbacks import ValidationScore

rng = np.random.default_rng(0)
n, side = 2600, 12
right, up = rng.uniform(size=(2, n, 1))

x, y = np.meshgrid(np.linspace(0, 1, side), np.linspace(0, 1, side))
distances = (x.ravel() - right) ** 2 + (y.ravel() - up) ** 2
spots = rng.choice([-1, 1], size=(n, 1)) * np.exp(-35 * distances)

time, phases = np.linspace(-0.2, 1.2, 80), rng.uniform(0, 2 * np.pi, size=(n, 1))
tones = np.exp(-35 * (time - right) ** 2) * np.sin(2 * np.pi * (4 + 10 * up) * time + phases)

views = Views(
    {
        "picture": spots + 0.1 * rng.standard_normal(spots.shape),
        "tone": tones + 0.1 * rng.standard_normal(tones.shape),
    }
)
train, validation, test = views[:1600], views[1600:2000], views[2000:]


def draw(ax, name, row):
    if name == "picture":
        ax.imshow(row.reshape(side, side), cmap="RdBu_r", vmin=-1, vmax=1, origin="lower")
    else:
        ax.plot(time, row, color="#333333", linewidth=1)
        ax.set(ylim=(-1.3, 1.3), box_aspect=1)
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_color("#dddddd")


figure, axes = plt.subplots(2, 7, figsize=(8, 2.5), layout="constrained")
for name, row_of_axes in zip(views.names, axes, strict=True):
    for ax, row in zip(row_of_axes, train[name], strict=False):
        draw(ax, name, row)
    row_of_axes[0].set_ylabel(name)
plt.show()

# %%
# Deep CCA trains one network per view to maximize the correlation of their outputs. The validation
# rows select the epoch whose weights are kept. ``score`` is the mean correlation of the components,
# here on test rows.

linear = CCA(8, reg=0.1).fit(train)
deep = DCCA(
    8,
    hidden_layer_sizes=(128, 128),
    batch_size=200,
    max_epochs=40,
    callbacks=[ValidationScore("total_correlation")],
    random_state=0,
).fit(train, X_val=validation)
for model in (linear, deep):
    print(f"{type(model).__name__:4}: held-out correlation {model.score(test):5.2f}")

# %%
# The loss is the negative total correlation of a batch, at least -8 for eight components. It is
# optimistic; the validation rows show how much of the correlation generalizes.

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
history = pd.DataFrame(deep.history_).set_index("epoch")
history[["loss", "valid_loss"]].plot(ax=axes[0], ylabel="Loss")
history[["valid_total_correlation"]].plot(ax=axes[1], ylabel="Total correlation")
plt.show()

# %%
# Training did not use the positions. But since both views share one space, a linear regression
# from scores of pictures to positions also predicts them from tones, without having seen any tone.

positions = np.hstack([right, up])
panels = {"true positions": positions[2000:]}
for model in (linear, deep):
    scores, tone_scores = model.transform(train)["picture"], model.transform(test)["tone"]
    regression = LinearRegression().fit(scores, positions[:1600])
    name = "deep" if model is deep else "linear"
    panels[f"predicted, {name} CCA"] = regression.predict(tone_scores)
    print(f"{name} CCA: R² of positions {regression.score(tone_scores, positions[2000:]):5.2f}")

red, blue = 0.1 + 0.85 * positions[2000:].T
colors = np.stack([red, np.full(len(test), 0.45), blue], axis=1)
figure, axes = plt.subplots(1, 3, figsize=(8, 2.9), layout="constrained")
for ax, (title, points) in zip(axes, panels.items(), strict=True):
    ax.scatter(*points.T, c=colors, s=10, linewidths=0)
    ax.set(xlim=(-0.1, 1.1), ylim=(-0.1, 1.1), xticks=[], yticks=[], box_aspect=1)
    ax.set_title(title, fontsize="medium")
    ax.spines[:].set_color("#dddddd")
plt.show()

# %%
# A tone also retrieves its picture among 600 test pictures.

for model in (linear, deep):
    print(evaluate_retrieval(test, estimator=model, measures=["r@1", "r@10", "mr"]))

# %%
# Three tones, and the best matching pictures. The spots are at the right position, and bright or
# dark, which the tone does not determine.

index = RetrievalIndex(deep).add(test.select(["picture"]))
queries = [5, 1, 2]
_, found = index.search({"tone": test["tone"][queries]}, target="picture", k=6)
figure, axes = plt.subplots(3, 7, figsize=(8, 3.7), layout="constrained")
for row_of_axes, query, answers in zip(axes, queries, found, strict=True):
    draw(row_of_axes[0], "tone", test["tone"][query])
    for ax, answer in zip(row_of_axes[1:], answers, strict=True):
        draw(ax, "picture", test["picture"][answer])
axes[0, 0].set_title("tone", fontsize="medium")
axes[0, 1].set_title("answers", fontsize="medium")
plt.show()
