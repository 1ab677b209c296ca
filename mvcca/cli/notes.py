"""What the help of a command explains below its options."""

from __future__ import annotations

# The one way in which commands, errors and hits count rows.
ROWS = "rows are numbered from 0, as in Python"

_BLOCKS = """Large files are read in blocks of rows; workbooks, .npz files of dense arrays and .mat
files before version 7.3 as a whole."""

_IDS = """--id COLUMN names what identifies the objects: a column of a table or of the obs of .h5ad,
or an array beside the matrix in an .npz, .h5 or .zarr file. A file without such a column is matched
by its first column, if that has no name or distinct texts, which is said. The texts of a folder
have the names of their files, without .txt. Ids are compared as text."""

_ROWS = f"Without --id, {ROWS}. Errors in text files also give the line, from 1."

FILES = f"""files (their content decides, not their names; each is said to be read as what):
  .npy             a dense matrix with one row per object
  .npz             one dense array, file.npz:KEY for one of several, or scipy.sparse.save_npz
  .h5, .zarr       one matrix, or file.h5:KEY for one of several (need h5py, zarr)
  .mat             one MATLAB matrix, or file.mat:NAME for one of several (7.3 needs h5py)
  .parquet, .arrow columns of numbers, or one of lists of equal length; file.arrow:NAME for one
                   column (need pyarrow); .jsonl, a JSON object in each line, is read alike
  .h5ad, .xlsx     AnnData, a sheet of a workbook (need h5py, openpyxl)
  tables in text   numbers between tabs, commas, semicolons or spaces, or a column of lists, with or
                   without a header and ids; may be packed (.gz, .bz2, .xz, .zst)
  other text       one text per line; as labels: one line per object, separated by commas
  FOLDER           its .txt files, one text each, in the order of their names
Labels are one class per row, an indicator matrix of 0 and 1 (dense or sparse), real label vectors,
or label sets: the lines of a .txt file, or a column of lists or of names between |, ; or commas.
Column names of tables are stored in the model; rows to project must have the same columns in the
same order.

{_IDS}
{_ROWS}"""

TRANSFORM = f"""{_BLOCKS}
Scores are written in blocks, too; the output file appears when it is complete.

{_IDS}
{_ROWS}"""

SEARCH = f"""{_BLOCKS}
Projected galleries are kept in memory. Every row of a gallery is one item; with --joint, rows of
several galleries with the same number or id are one item. Queries in several views are paired:
their projections are added.
--bank takes training rows, not the queries, of the query views and of the gallery views.

output, by file extension:
  .csv, .parquet, .arrow  one line per hit: query, rank (from 1), view (if several), item, score
  .npz                    items and scores, (queries, k), and views (if several)
  .npy                    items only
  .trec                   a run file for TREC's tools: query Q0 item rank score mvcca; items of
                          several galleries are named view:item, and equal scores are lowered to
                          keep the order
Query and item are ids with --id. Without, {ROWS}.
Scores are larger for better items; distances of --similarity euclidean are negative.

{_IDS}"""

MIGRATE = f"""A map is fitted to the sample, whose items both models embedded. By default it is
applied to every row of OLD, so that queries of the new model find rows that only the old one has
seen. With --direction queries nothing stored changes: -o MAP.mvcca is the map of queries. `mvcca
transform MAP.mvcca --view new=FILE` applies it, and of a map of items, --view old=FILE. In Python,
mvcca.interop.migration.Migration does.

The first figure is the share of vectors of NEW that find their own row first among all rows of OLD,
by cosine, with two standard errors. Each searches by a map without its own pair: leave-one-out for
affine items and cca queries, else five folds. Of more than 100,000 rows, as many are drawn. The
second figure is the share of a vector's nearest rows that stay nearest among a fifth of the sample,
beside the share that the old model has by itself. Of the nearest rows among all, fewer stay.

If no more vectors find their own row first than by a map of permuted pairs, nothing is written
without --force, and the exit code is 1.

{_BLOCKS}

{_IDS}
{_ROWS}"""

TEST = f"""The first table shows, for each component, its correlation in these subjects, the 95th
percentile of shuffled pairs, the p-value of a permutation test (corrected for the number of
components), an estimate of the correlation in the population with an interval, and the correlation
in subjects that were left out of all steps. Variables are listed by their loadings, the
correlations with their own set's variate.

{_IDS}
{_ROWS}"""

ALIGN = f"""Rows that are each other's nearest under a model become pseudo-pairs, to which the next
model is fitted. With at least 10 known pairs, each is left out once to measure how well rows
match. Without known pairs, the alignment is run again from some of the pairs that it found; if this
does not lead to the same matches, it has failed, and nothing is written without --force.

{_IDS}
{_ROWS}"""

SIMILARITY = """Measures: cka_unbiased, cka, procrustes, predictivity, mean_correlation,
mean_squared_correlation, svcca, pwcca, mutual_knn. Each is calibrated: unrelated layers have 0 on
average, whatever their width, and equal ones 1. z (with --json) tells how many standard deviations
a measure lies above that of unrelated layers."""

MEASURES = """retrieval measures, separated by commas; the first one by pairs determines the best
method for the same object, the first one by labels the best for the same class (default:
map@50,r@1,r@10,mrr):
  map, map@K      mean average precision of the whole ranking or of its first K items
  p@K, r@K        precision; share of queries with a right item among the first K
  mrr             mean reciprocal rank of the first right item
  mr, mean_rank   median and mean rank of the first right item
  ndcg, ndcg@K    normalized discounted gain; the gain is the number of shared labels
  recall@K        share of the right items among the first K
  wmap@K          weighted mean average precision, with --label-vectors
Variants such as map@50:cutoff are described in mvcca.evaluate_retrieval"""

TEXTS = """Views in .txt files and in folders of them. msds has a network of words and reads them
as sequences of words; all other methods take TF-IDF features reduced by truncated SVD. The
vocabulary is that of the texts given here, and is part of the model: other commands take the same
kind of file."""

NETWORKS = """The defaults depend on the number of training rows. Up to 10,000 rows: hidden layers
of 256,256, batches of 128 and 60 epochs; the scaling of ds-dcca starts at one, and the
decorrelation of soft-cca is 1. More rows, as published: hidden layers of 800,800, batches of 750
and 100 epochs. Batches have at least 8 rows per component, and the ds- methods warm up for half of
the epochs. corrnet, devise and msds use 100 epochs, the autoencoders and ccl 200. The ridge of
networks is 1e-4. Features are standardized."""
