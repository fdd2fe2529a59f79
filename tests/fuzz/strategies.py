"""Where cases come from: every parameter of every constructor, ordinary values first.

Hypothesis shrinks to what is left out and to what stands first.
"""

from dataclasses import replace

from hypothesis import strategies as st

from .compositions import CompositionCase
from .data import (
    KINDS,
    LAYOUTS,
    SPARSE_LAYOUTS,
    WEIGHTS,
    Data,
    Known,
    Labels,
    Precisions,
    Range,
    Responsibilities,
    RowsAsMeans,
    Simplex,
    Weights,
)
from .fisher_vectors import FisherVectorCase
from .grammars import TAGS, GrammarCase, Rules, Sentences
from .mixtures import MixtureCase
from .paths import PathCase
from .steps import STEPS, StepsCase
from .streams import StreamCase

SEEDS = st.integers(0, 999)

SILENT = {"verbose": st.just(0), "verbose_interval": st.integers(1, 10)}
COMMON = {
    "background": st.booleans(),
    "entmax_alpha": st.sampled_from([1.0, 1.5, 2.0, 1 + 1e-12, 1.01, 1.25, 3.0, 10.0, 50.0]),
    "temperature": st.sampled_from([1.0, 0.0, 0.5, 3.0, 1e-13, 1e-11, 1e-3, 10.0, 1e6]),
    "weight_concentration_prior": st.one_of(
        st.sampled_from([1.0, 0.0, 0.5, 3.0, -2.0, -30.0, 1e6, 1e300]),
        st.builds(Range, st.sampled_from([0.5, -2.0]), st.sampled_from([1.0, 3.0])),
    ),
    "weight_floor": st.sampled_from([None, 1e-3, 0.1, 0.0, 1 / 3, 1e-300]),
    "flat_start": st.booleans(),
    "n_init": st.integers(1, 2),
    "init_params": st.one_of(
        st.sampled_from(["kmeans", "merging", "k-means++", "random", "random_from_data"]),
        st.builds(Labels, SEEDS),
        st.builds(
            Responsibilities,
            SEEDS,
            st.sampled_from([0.0, 0.5]),
            st.sampled_from([1.0, 1e-300, 1e300]),
        ),
    ),
    "init_size": st.sampled_from([None, 1, 5, 1000]),
    "weights_init": st.builds(Simplex, SEEDS, st.integers(0, 2)),
    "means_init": st.builds(RowsAsMeans, SEEDS, st.sampled_from([0.0, 1e-9, 1.0, 1e8])),
    "tol": st.sampled_from([1e-3, 0.0, 1e-9, 1.0]),
    "max_iter": st.sampled_from([10, 0, 1, 2, 40]),
    "random_state": SEEDS,
    "warm_start": st.booleans(),
    "learning_decay": st.sampled_from([0.7, 1.0, 0.5, 1e-300]),
    **SILENT,
}
COVARIANCES = {
    "covariance_type": st.sampled_from(["full", "tied", "diag", "spherical"]),
    "reg_covar": st.sampled_from([1e-6, 0.0, 1.0, 1e-300, 1e-12, 1e6]),
    "precisions_init": st.builds(Precisions, SEEDS, st.sampled_from([1.0, 1e-9, 1e9])),
}
STUDENT_T = {
    "covariance_type": COVARIANCES["covariance_type"],
    "reg_covar": COVARIANCES["reg_covar"],
    "scale_matrices_init": COVARIANCES["precisions_init"],
    "degrees_of_freedom": st.one_of(
        st.sampled_from(["estimated", "tied", 4.0, 1e-3, 0.1, 1, 1e6, 1e100]),
        st.builds(Range, st.just(0.5), st.sampled_from([3.0, 1e9])),
    ),
}


@st.composite
def some_of(draw, options):
    """Return few, half or most of the options.

    Those of `st.fixed_dictionaries` would not shrink to the ones that matter: they are drawn by
    their number among the rest.
    """
    eighths = draw(st.sampled_from([1, 2, 6]))
    is_chosen = st.integers(0, 7).map(lambda number: number >= 8 - eighths)
    return {name: draw(values) for name, values in options.items() if draw(is_chosen)}


def fixed_among(*names):
    """Return a strategy for some of the names, often for none."""
    return st.one_of(st.just(()), st.lists(st.sampled_from(names), unique=True).map(tuple))


MIXTURES = {
    "VonMisesFisherMixture": COMMON
    | {
        "concentration_type": st.sampled_from(["free", "tied"]),
        "concentration_prior": st.sampled_from([1.0, 0.0, 1e-9, 10.0, 1e6, 1e300]),
        "negentropy": st.sampled_from(["exact", "ode", "rational", "banerjee", "newton"]),
        "concentrations_init": st.sampled_from([1.0, 0.0, 1e-9, 50.0, 1e5, 1e12, None]),
        "fixed": fixed_among("weights", "means", "concentrations"),
    },
    "SparseGaussianMixture": COMMON
    | COVARIANCES
    | {"fixed": fixed_among("weights", "means", "covariances")},
    "StudentTMixture": COMMON
    | STUDENT_T
    | {"fixed": fixed_among("weights", "means", "scale_matrices")},
    "RelativeGMM": COMMON
    | COVARIANCES
    | {
        "solver": st.sampled_from(["ecm", "em"]),
        "order": st.sampled_from(["means", "scales", "both"]),
        "ordering_feature": st.integers(0, 1),
        "clearance": st.sampled_from([0.0, 1e-3, 0.3, 1e-300]),
        "fixed": fixed_among("weights", "covariances"),
    },
}


def parameters(options, n_components):
    """Return a strategy for some of the options; those left out have their defaults."""
    return st.builds(
        lambda K, chosen: compatible({"n_components": K} | chosen), n_components, some_of(options)
    )


def data(*, scales, layouts, missing=(0.0,)):
    return st.builds(
        Data,
        kind=st.sampled_from(list(KINDS)),
        n=st.sampled_from([20, 12, 40, 6, 5, 2, 1]),
        d=st.integers(2, 6),
        seed=SEEDS,
        scale=st.sampled_from(scales),
        offset=st.sampled_from([0.0, 0.0, 1.0, -1e6, 1e8]),
        zero_rows=st.sampled_from([0, 0, 1, 3]),
        dtype=st.sampled_from(["float64", "float32"]),
        layout=st.sampled_from(layouts),
        missing=st.sampled_from(missing),
    )


def weights():
    return st.one_of(
        st.none(),
        st.builds(
            Weights,
            st.sampled_from(list(WEIGHTS)),
            SEEDS,
            st.sampled_from([1.0, 1.0, 1e-9, 1e9, 1e-300, 1e100]),
            st.sampled_from(["float64", "float64", "float32"]),
        ),
    )


def known():
    """Return a strategy for known components, of none of the rows as often as of some."""
    some = st.builds(Known, st.sampled_from([0.3, 1.0]), SEEDS)
    return st.one_of(st.none(), some)


OF_FREE_WEIGHTS = {"weight_concentration_prior", "weight_floor", "background"}


def compatible(params):
    """Leave out options that are refused beside others."""
    lacking = [name for name in ("means", "concentrations") if params.get(f"{name}_init") is None]
    fixed = params.get("fixed", ())
    if set(fixed) & set(lacking):
        fixed = ()
        params = params | {"fixed": fixed}
    if "concentrations" in fixed:
        params = {k: v for k, v in params.items() if k != "concentration_prior"}
    if "weights" in fixed:
        params = {k: v for k, v in params.items() if k not in OF_FREE_WEIGHTS}
    if params.get("covariance_type") == "tied" or "covariances" in fixed:
        params = {k: v for k, v in params.items() if k != "order"}
    if params.get("weight_floor") == 0:
        params = params | {"weight_concentration_prior": 1.0}
    return params


@st.composite
def mixture_cases(draw, name):
    rows, gaps = draw(rows_for(name))
    return MixtureCase(
        estimator=name,
        params=draw(parameters(MIXTURES[name], st.integers(1, 5))) | gaps,
        data=draw(rows),
        weights=draw(weights()),
        other=draw(rows),
        known=draw(known()),
    )


def rows_for(name):
    """Return a strategy for strategies for rows that a mixture takes, with parameters for them."""
    on_sphere = name == "VonMisesFisherMixture"
    scales = [1.0, 1.0, 1e-3, 1e3, 1e-9, 1e9, 1e-30, 1e30]
    scales += [1e-300, 1e290, 5e-324] if on_sphere else [1e-99, 1e-300]
    layouts = [*LAYOUTS, *SPARSE_LAYOUTS] if on_sphere else list(LAYOUTS)
    whole = data(scales=scales, layouts=layouts), {}
    gaps = data(scales=scales, layouts=layouts, missing=[0.0, 0.1, 0.5])
    marginal = gaps, {"missing_values": "marginal"}
    return st.sampled_from([whole] if on_sphere else [whole, whole, marginal])


@st.composite
def stream_cases(draw):
    name = draw(st.sampled_from(list(MIXTURES)))
    rows, gaps = draw(rows_for(name))
    return StreamCase(
        estimator=name,
        params=draw(parameters(MIXTURES[name], st.integers(1, 4))) | gaps,
        batches=draw(st.lists(rows, min_size=1, max_size=4).map(tuple)),
        weights=draw(weights()),
        known=draw(known()),
    )


PATHS = {
    "max_components": st.sampled_from([4, 1, 2, 6]),
    "min_components": st.sampled_from([1, 2]),
    "criterion": st.sampled_from(["slope", "bic", "icl", "held_out"]),
    "validation_fraction": st.sampled_from([None, 0.3]),
    "refit": st.booleans(),
}
NOT_OF_PATHS = {"fixed", "weights_init"}  # and arrays, by component


@st.composite
def path_cases(draw):
    name = draw(st.sampled_from(list(MIXTURES)))
    options = {k: v for k, v in MIXTURES[name].items() if k not in NOT_OF_PATHS}
    params = draw(parameters(options, st.just(1)))
    params = {k: v for k, v in params.items() if k != "n_components" and not isinstance(v, Range)}
    rows, gaps = draw(rows_for(name))
    return PathCase(
        estimator=name,
        path=draw(some_of(PATHS)),
        params=params | gaps,
        data=draw(rows),
        weights=draw(weights()),
    )


FISHER_VECTORS = {
    "embedding_dim": st.integers(2, 50),
    "fit_on": st.sampled_from(["types", "tokens"]),
    "geometry": st.sampled_from(["euclidean", "tangent"]),
    "normalization": st.sampled_from(["fisher", "paper", None]),
    "power": st.sampled_from([1.0, 0.5, 1e-9]),
    "norm": st.sampled_from(["l2", None]),
    "random_state": SEEDS,
}
GRADIENTS = {
    None: ("means", "weights", "concentrations"),
    "VonMisesFisherMixture": ("means", "weights", "concentrations"),
    "SparseGaussianMixture": ("means", "variances", "weights"),
}
NOT_OF_STEPS = {"fixed", "warm_start", "init_params"}  # which steps say, and what is by row
ABOUT_ROWS = {"init_params", "weights_init", "means_init", "precisions_init", "covariance_type"}


@st.composite
def fisher_vector_cases(draw):
    name = draw(st.sampled_from(list(GRADIENTS)))
    gradients = st.permutations(GRADIENTS[name]).flatmap(
        lambda order: st.integers(1, 3).map(lambda n: tuple(order[:n]))
    )
    mixture_params = {}
    if name is not None:
        options = {k: v for k, v in MIXTURES[name].items() if k not in ABOUT_ROWS}
        mixture_params = draw(parameters(options, st.integers(1, 4)))
    if name == "SparseGaussianMixture":
        mixture_params["covariance_type"] = "diag"
    lengths = st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any).map(tuple)
    return FisherVectorCase(
        params=draw(some_of(FISHER_VECTORS | {"gradients": gradients})),
        mixture=name,
        mixture_params=mixture_params,
        vectors=draw(data(scales=[1.0, 1.0, 1e-3, 1e3, 1e-30, 1e20], layouts=["C"])),
        documents=draw(documents()),
        lengths=draw(st.one_of(st.none(), lengths)),
        own_vectors=draw(st.sampled_from([True, True, False])),
    )


def documents():
    return st.builds(
        Data,
        kind=st.sampled_from(["counts", "axes"]),
        n=st.sampled_from([8, 1, 30]),
        seed=SEEDS,
        scale=st.sampled_from([1.0, 1e-30, 1e9, 1e-300]),
        zero_rows=st.integers(0, 2),
        dtype=st.sampled_from(["float64", "float32"]),
        layout=st.sampled_from([*LAYOUTS, *SPARSE_LAYOUTS]),
    )


GRAMMAR = {
    "inference": st.sampled_from(["map", "mean-field"]),
    "init": st.one_of(
        st.sampled_from(["harmonic", "random"]),
        st.builds(Rules, SEEDS, st.sampled_from([1.0, 0.1, 1e-30])),
    ),
    "distance_power": st.sampled_from([1.0, 0.0, 30.0, 1e3, 1e-9, 1e308]),
    "all_tags": st.booleans(),
    "unknown_tags": st.sampled_from(["error", "average"]),
    "weight_concentration_prior": st.sampled_from(
        [1.0, 0.5, 0.0, -3.0, 10.0, 1e15, -1e15, 1e-300, 1e-290, -1e-300, 1 - 1e-15, 1 + 1e-15]
    ),
    "weight_floor": st.sampled_from([1e-4, 0.0, 1e-300, 0.1, 1e-17, 0.2]),
    "temperature": st.sampled_from([1.0, 0.0, 0.5, 3.0, 1e-13, 5e-13, 2e-12, 1e-11, 1e6, 1e300]),
    "tol": st.sampled_from([1e-4, 0.0, 1.0]),
    "max_iter": st.sampled_from([5, 0, 1, 20]),
    "random_state": SEEDS,
    **SILENT,
}


def grammar_cases():
    return st.builds(
        GrammarCase,
        params=some_of(GRAMMAR),
        sentences=st.builds(
            Sentences,
            st.integers(1, 8),
            st.integers(1, 8),
            st.sampled_from([5, 1, 2, 12, 50]),
            SEEDS,
            st.sampled_from(list(TAGS)),
        ),
        supervised=st.sampled_from([False, False, False, True]),
        other_seed=SEEDS,
    )


MEETING = {  # ordinary values: what meets here is strange enough
    "background": st.booleans(),
    "weight_concentration_prior": st.sampled_from([1.0, 0.5, -2.0, -30.0]),
    "flat_start": st.booleans(),
    "temperature": st.sampled_from([1.0, 0.0, 2.0]),
    "entmax_alpha": st.sampled_from([1.0, 1.5]),
    "covariance_type": COVARIANCES["covariance_type"],
    "concentration_type": st.sampled_from(["free", "tied"]),
    "negentropy": st.sampled_from(["exact", "ode", "rational"]),
    "degrees_of_freedom": st.sampled_from(["estimated", "tied", 4.0]),
    "order": st.sampled_from(["means", "scales", "both"]),
    "clearance": st.sampled_from([0.0, 1e-3]),
    "ordering_feature": st.sampled_from([0, 1]),
}


@st.composite
def composition_cases(draw):
    name = draw(st.sampled_from(list(MIXTURES)))
    options = {k: v for k, v in MEETING.items() if k in MIXTURES[name]}
    params = draw(some_of(options))
    fixed = draw(MIXTURES[name].get("fixed", st.just(())))
    numbers = [n for n in ("weight_concentration_prior", "degrees_of_freedom") if n in options]
    by_component = draw(st.lists(st.sampled_from(numbers), unique=True).map(tuple))
    if "weights" in fixed:
        by_component = tuple(n for n in by_component if n not in OF_FREE_WEIGHTS)
    params = {k: v for k, v in params.items() if k not in by_component}
    params = compatible(params | {"fixed": fixed, "means_init": 0, "concentrations_init": 0})
    fixed = params.pop("fixed")
    del params["means_init"], params["concentrations_init"]
    return CompositionCase(
        estimator=name,
        params=params,
        fixed=fixed,
        by_component=by_component,
        data=draw(
            st.builds(
                Data,
                st.sampled_from(["clusters", "normal", "few points", "counts", "axes"]),
                st.sampled_from([60, 20, 9]),
                st.integers(2, 5),
                SEEDS,
                st.sampled_from([1.0, 1e-3, 1e3]),
                st.sampled_from([0.0, 1.0]),
            )
        ),
        weights=draw(weights()),
        known=draw(st.sampled_from([0.0, 0.0, 0.3, 1.0])),
        seed=draw(SEEDS),
    )


@st.composite
def steps_cases(draw):
    name = draw(st.sampled_from(list(MIXTURES)))
    rows, gaps = draw(rows_for(name))
    plain = rows.map(lambda data: replace(data, kind="normal", n=60, scale=1.0, offset=0.0))
    options = {k: v for k, v in MIXTURES[name].items() if k not in NOT_OF_STEPS}
    params = draw(parameters(options, st.integers(1, 4)))
    params = {k: v for k, v in params.items() if not isinstance(v, Range)}
    return StepsCase(
        estimator=name,
        params=params | gaps,
        data=draw(st.one_of(plain, rows)),
        weights=draw(weights()),
        known=draw(known()),
        steps=draw(st.lists(st.sampled_from(list(STEPS)), min_size=1, max_size=5).map(tuple)),
    )


STRATEGIES = {
    **{name: mixture_cases(name) for name in MIXTURES},
    "compositions": composition_cases(),
    "streams": stream_cases(),
    "steps": steps_cases(),
    "ComponentPath": path_cases(),
    "FisherVectorTransformer": fisher_vector_cases(),
    "DependencyModelWithValence": grammar_cases(),
}
