"""
Deep methods for correlation differ in how they keep outputs apart
==================================================================

All of them maximize the agreement of two networks, and need a reason not to make all outputs
equal. Deep CCA whitens each batch, Soft-CCA penalizes correlated outputs, Soft-HGR uses covariances
without whitening, and others add a reconstruction, gates on the inputs or parameters that depend on
them.
"""

# %%
# Six methods train the same networks, with 64 hidden units and ten outputs, on 1,000 halves of
# digits. Their losses cannot be compared; the total correlation of validation rows can.

import matplotlib.pyplot as plt

from mvcca import CCA
from mvcca.datasets import load_digits_views
from mvcca.deep import DCCA, DCCAE, DSDCCA, L0CCA, SoftCCA, SoftHGR
from mvcca.deep.callbacks import ValidationScore
from mvcca.plotting import CorrelationDisplay

views = load_digits_views("halves").views
train, validation, test = views[:1000], views[1000:1200], views[1200:]
models = {
    method.__name__: method(
        10,
        hidden_layer_sizes=(64,),
        batch_size=200,
        max_epochs=8,
        callbacks=[ValidationScore("total_correlation")],
        random_state=0,
    ).fit(train, X_val=validation)
    for method in (DCCA, DCCAE, SoftCCA, SoftHGR, L0CCA, DSDCCA)
}
figure, ax = plt.subplots(layout="constrained")
for name, model in models.items():
    ax.plot(model.history_["epoch"], model.history_["valid_total_correlation"], label=name)
ax.set(xlabel="Epoch", ylabel="Total correlation of validation rows")
ax.legend(frameon=False)
plt.show()

# %%
# Eight epochs are few, and the order may change with more. The correlation of every component on
# test rows shows where the methods differ from linear CCA.

linear = {"CCA": CCA(10, reg=0.1).fit(train)}
CorrelationDisplay.from_estimator(linear | models, test)
plt.show()
for name, model in (linear | models).items():
    print(f"{name:8} total correlation {10 * model.score(test):.2f} of 10")

# %%
# Dynamically scaled deep CCA multiplies the parameters of the last layer by factors that depend on
# the row. Scaling starts in the middle of training. The factors of one row lie around 1, and the
# standard deviation over rows shows the parameters that depend on the input.

scales = models["DSDCCA"].scales(test[:100])["left"]
figure, axes = plt.subplots(1, 2, figsize=(10, 3), layout="constrained")
panels = {"Scales of one row": scales[0], "Standard deviation of scales": scales.std(axis=0)}
for ax, (title, values) in zip(axes, panels.items(), strict=True):
    figure.colorbar(ax.imshow(values, aspect="auto"))
    ax.set(title=title, xlabel="Hidden unit; the last is the bias", ylabel="Component")
plt.show()
