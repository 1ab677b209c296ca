"""
Word vectors relate views with different label vocabularies
===========================================================

Images tagged "cat" and texts filed under "Katze" have no label in common. If labels are represented
by word vectors, MVMLCCA compares these vectors, and the two vocabularies need no common word.
"""

# %%
# Left halves of digits have English labels, right halves German ones, and no image is in both
# views.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import MVMLCCA, Labels, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.similarity import squared_exponential

ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]

data = load_digits_views("halves")
order = np.random.RandomState(0).permutation(len(data.views))
lefts, rights, held_out = np.split(order, [600, 1200])
views = Views.unpaired({"left": data.views["left"][lefts], "right": data.views["right"][rights]})
tags = {
    "left": [{ENGLISH[digit]} for digit in data.labels[lefts]],
    "right": [{GERMAN[digit]} for digit in data.labels[rights]],
}
print(tags["left"][:3], tags["right"][:3])

# %%
# In a bilingual word embedding, translations have similar but not equal vectors. We simulate this
# with a vector per digit, and noise per word.

rng = np.random.RandomState(0)
meanings = rng.standard_normal((10, 20)) / np.sqrt(20)
vectors = {
    word: meaning + 0.3 * rng.standard_normal(20) / np.sqrt(20)
    for words in (ENGLISH, GERMAN)
    for word, meaning in zip(words, meanings, strict=True)
}

# %%
# ``Labels.word_sums`` sums the vectors of the labels of a row. The similarity of two rows is a
# squared exponential of the distance between their label vectors. The bandwidth is chosen such that
# distances between translations are small, and distances between digits large.

y = {name: Labels.of(label_sets).word_sums(vectors) for name, label_sets in tags.items()}
words = [np.stack([vectors[word] for word in vocabulary]) for vocabulary in (ENGLISH, GERMAN)]
similarity = squared_exponential(*words, sigma=0.2)

figure, ax = plt.subplots(layout="constrained")
image = ax.imshow(similarity, cmap="Blues", vmin=0, vmax=1)
ax.set_xticks(range(10), GERMAN, rotation=45)
ax.set_yticks(range(10), ENGLISH)
figure.colorbar(image, label="Similarity of labels")
plt.show()

# %%
# Fitting is the same as with a single vocabulary. Retrieval is judged by weighted mAP: each of the
# first 50 items counts by the similarity of its word vector to the query's. Random scores show what
# chance gives.

model = MVMLCCA(9, label_similarity="sqexp", sigma=0.2, reg=0.01).fit(views, y)
scores = dict(model.transform(data.views[held_out]).items())
digits = data.labels[held_out]
held_out_tags = {
    "left": [{ENGLISH[digit]} for digit in digits],
    "right": [{GERMAN[digit]} for digit in digits],
}
random = {name: rng.standard_normal(block.shape) for name, block in scores.items()}
judged = {"measures": ["wmap@50", "wmap@50:weighted"], "label_vectors": vectors}
print(evaluate_retrieval(data.views[held_out], held_out_tags, estimator=model, **judged))
print("chance:", evaluate_retrieval(random, held_out_tags, **judged).mean())

# %%
# Here the digits are known, so the ordinary mAP can be computed for comparison. It needs a common
# vocabulary.

measures = ["map", "map@50"]
print(evaluate_retrieval(data.views[held_out], digits, estimator=model, measures=measures))

# %%
# With the words themselves as labels, no row of one view is similar to any row of the other:
# ``fit`` and measures of shared labels raise an error.

for attempt in (
    lambda: MVMLCCA(9, label_similarity="cosine", reg=0.01).fit(views, tags),
    lambda: evaluate_retrieval(scores, held_out_tags, measures="map"),
):
    try:
        attempt()
    except ValueError as error:
        print(error)
