"""
Networks find what linear CCA cannot: where a spot is, from how a tone sounds
=============================================================================

A spot on a picture, bright or dark by the toss of a coin, and a tone of random phase. Where the
spot is and how the tone sounds are the same two numbers. But with the opposite sign as likely as
not, no linear map of either view says anything about the other.
"""

# %%
# The higher the spot, the higher the tone; the further right, the later it sounds.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from mvcca import CCA, RetrievalIndex, Views, evaluate_retrieval
from mvcca.deep import DCCA
from mvcca.deep.callbacks import TotalCorrelation
from mvcca.plotting import plot_learning_curve

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
# Deep CCA trains a network per view for their outputs to correlate. The validation rows choose the
# epoch whose weights stay. ``score`` is the mean correlation of the components, here of rows that
# had no part in any of it.

linear = CCA(8, reg=0.1).fit(train)
deep = DCCA(
    8,
    hidden_layer_sizes=(128, 128),
    batch_size=200,
    max_epochs=40,
    callbacks=[TotalCorrelation(8)],
    device="cpu",
    random_state=0,
).fit(train, X_val=validation)
for model in (linear, deep):
    print(f"{type(model).__name__:4}: held-out correlation {model.score(test):5.2f}")

# %%
# The loss is minus the total correlation of a batch, so both panels tell one story. Training rows
# flatter; there are eight correlations to be had, and the validation rows say how many hold.

plot_learning_curve(deep)
plt.show()

# %%
# Nobody told the networks of places. But a linear regression that learns them from the scores of
# pictures reads them off tones, of which it has never seen one: both views are in one space.

place = np.hstack([right, up])
panels = {"where the spot is": place[2000:]}
for model in (linear, deep):
    scores, heard = model.transform(train)["picture"], model.transform(test)["tone"]
    regression = LinearRegression().fit(scores, place[:1600])
    name = "deep" if model is deep else "linear"
    panels[f"read off its tone, {name} CCA"] = regression.predict(heard)
    print(f"{name} CCA: R² of places {regression.score(heard, place[2000:]):5.2f}")

red, blue = 0.1 + 0.85 * place[2000:].T
colors = np.stack([red, np.full(len(test), 0.45), blue], axis=1)
figure, axes = plt.subplots(1, 3, figsize=(8, 2.9), layout="constrained")
for ax, (title, points) in zip(axes, panels.items(), strict=True):
    ax.scatter(*points.T, c=colors, s=10, linewidths=0)
    ax.set(xlim=(-0.1, 1.1), ylim=(-0.1, 1.1), xticks=[], yticks=[], box_aspect=1)
    ax.set_title(title, fontsize="medium")
    ax.spines[:].set_color("#dddddd")
plt.show()

# %%
# So a tone finds its picture among 600 that nothing has seen.

for model in (linear, deep):
    print(evaluate_retrieval(model.transform(test), measures=["r@1", "r@10", "mr"]))

# %%
# Three tones, and the pictures that fit them best. The spots are where they should be; whether they
# are bright or dark is what the tone does not say.

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
