"""
Views may be labelled in different words
========================================

Images tagged "cat" and texts filed under "Katze" have no label in common. If the labels are words
with vectors, MVMLCCA compares the vectors, and the two vocabularies need not share a word.
"""

# %%
# Left halves of digits are named in English, right halves in German, and no digit is seen in both
# views.

import matplotlib.pyplot as plt
import numpy as np

from mvcca import MVMLCCA, Views, evaluate_retrieval
from mvcca.datasets import load_digits_views
from mvcca.labels import label_vectors
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
# Word vectors from a bilingual embedding put translations close together, but not at the same
# place. These are made up to be so: a vector per digit, and some noise per word.

rng = np.random.RandomState(0)
meanings = rng.standard_normal((10, 20)) / np.sqrt(20)
vectors = {
    word: meaning + 0.3 * rng.standard_normal(20) / np.sqrt(20)
    for words in (ENGLISH, GERMAN)
    for word, meaning in zip(words, meanings, strict=True)
}

# %%
# ``label_vectors`` adds up the vectors of a row's labels. The similarity of two rows is then a
# squared exponential of the distance of their label vectors, with a bandwidth to match: distances
# between translations are much smaller than distances between digits.

y = {name: label_vectors(of_view, vectors) for name, of_view in tags.items()}
words = [np.stack([vectors[word] for word in vocabulary]) for vocabulary in (ENGLISH, GERMAN)]
similarity = squared_exponential(*words, sigma=0.2)

figure, ax = plt.subplots(layout="constrained")
image = ax.imshow(similarity, cmap="Blues", vmin=0, vmax=1)
ax.set_xticks(range(10), GERMAN, rotation=45)
ax.set_yticks(range(10), ENGLISH)
figure.colorbar(image, label="Similarity of labels")
plt.show()

# %%
# From then on all is as with labels of one vocabulary.

model = MVMLCCA(9, label_similarity="sqexp", sigma=0.2, within="sample", reg=0.01).fit(views, y)
scores = model.transform(data.views[held_out])
print(evaluate_retrieval(scores, data.labels[held_out], measures=["map", "map@50"]))

# %%
# With the words themselves as labels no row of one view is like any row of the other, and there is
# nothing to learn from.

try:
    MVMLCCA(9, label_similarity="cosine", within="sample", reg=0.01).fit(views, tags)
except ValueError as error:
    print(error)
