"""
A contrastive loss finds more pairs than a reconstruction
=========================================================

Without labels, the right answer to the left half of an image is its right half. Rankings, codes of
autoencoders and contrastive losses all bring the two together.
"""

# %%
# Halves of digits: 1,200 images for training, the others for testing, with pixels from 0 to 1.

import matplotlib.pyplot as plt
from sklearn.preprocessing import MinMaxScaler

from mvcca import CCA, PerView
from mvcca.datasets import load_digits_views
from mvcca.deep import (
    MSDS,
    CorrAE,
    CorrNet,
    CrossCorrAE,
    DeViSE,
    DSRankingCCA,
    EncoderCCA,
)
from mvcca.deep.functional import info_nce
from mvcca.plotting import RecallCurveDisplay

views = load_digits_views().views
views = PerView(MinMaxScaler()).fit(views[:1200]).transform(views)
train, test = views[:1200], views[1200:]

# %%
# Two ranking systems: :class:`~mvcca.deep.DSRankingCCA` ranks canonical variates of networks whose
# last layer is rescaled for each row, and :class:`~mvcca.deep.MSDS` finds the match among a few
# other items.

settings = {"hidden_layer_sizes": (64,), "max_epochs": 15, "random_state": 0}
ranking = {
    "DSRankingCCA": DSRankingCCA(
        16, scaling_layer_sizes=(16,), warm_up=8, batch_size=200, **settings
    ),
    "MSDS": MSDS(16, optimizer="adam", gamma=10, **settings),
}

# %%
# Three autoencoders. The codes of :class:`~mvcca.deep.CorrAE` reconstruct their own view, those of
# :class:`~mvcca.deep.CrossCorrAE` the other one, and :class:`~mvcca.deep.CorrNet` has one hidden
# layer for both.

autoencoders = {
    "CorrAE": CorrAE(16, learning_rate=3e-3, **settings),
    "CrossCorrAE": CrossCorrAE(16, learning_rate=3e-3, **settings),
    "CorrNet": CorrNet(16, output_activation="sigmoid", max_epochs=15, random_state=0),
}


# %%
# :class:`~mvcca.deep.DeViSE` maps one view linearly into the space of the other, and
# :class:`~mvcca.deep.EncoderCCA` takes any loss, here the contrastive one of many present models.
# The networks' outputs are used as trained, without a final linear CCA.


def contrastive(scores, _batch):
    left, right = scores.values()
    return info_nce(left, right)


others = {
    "DeViSE": DeViSE(max_epochs=15, random_state=0),
    "InfoNCE": EncoderCCA(16, objective=contrastive, ending="as_trained", **settings),
}

# %%
# Recall of the other half. With so few images and epochs, only the contrastive loss is ahead of
# linear CCA. The correspondence autoencoders, whose published networks are
# pre-trained, have hardly begun to learn.

models = {"CCA": CCA(16, reg=0.1)} | ranking | autoencoders | others
models = {name: model.fit(train) for name, model in models.items()}
RecallCurveDisplay.from_estimator(models, test, k=50)
plt.show()
