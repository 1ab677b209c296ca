"""
The first component finds zeros and sevens
==========================================

Labels that were not used in the fit tell what a component means. The area under the ROC curve
(AUROC) is the probability that an object with a label has a larger score than one without it.
"""

# %%
# CCA of the left and right halves of digits sees no label. On digits that were left out of the fit,
# its first component separates zeros (small scores) and sevens (large ones) from all others. Near
# 0.5, in white, a component does not know a digit.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import CCA, MLCCA
from mvcca.datasets import load_digits_views, load_spoken_digits
from mvcca.inspection import label_auroc
from mvcca.plotting import AurocDisplay

data = load_digits_views()
train, test, labels = data.views[:1200], data.views[1200:], data.labels[1200:]
model = CCA(5, reg=0.1).fit(train)
AurocDisplay.from_estimator(model, test, labels)
plt.show()

# %%
# Labels may also be those of each view's rows. Spoken and handwritten digits share no object, only
# labels; fitted to these, the same component of both views finds the same digits.

digits = load_spoken_digits()
supervised = MLCCA(5, reg=0.1).fit(digits.train.views, digits.train.labels)
AurocDisplay.from_estimator(supervised, digits.test.views, digits.test.labels)
plt.show()
areas = label_auroc(supervised.transform(digits.test.views), digits.test.labels)
sound, image = (np.concatenate(list(of_view.values())) for of_view in areas.values())
print(f"areas of sounds and images have a correlation of {np.corrcoef(sound, image)[0, 1]:.2f}")
