"""What Esser and Nielsen say, and how records are read for it."""

from .claims import claim, difference, exact, level

CORRECTED = "Algorithm 1 with its reference mean corrected; 30 samples in place of one."
PRINTED = "Algorithm 1 with its lost operator read as a plus sign; 30 samples in place of one."
PLUS = "lost operator as +"
FIELDS = "Expected gradient over the grid"
GRIDS = ("(0, 0)", "(20, 20)")
STEPS = "Truth (-5.1, -5), start (-2.5, 2)"
AWAY = "Log-likelihood lost with truths farther apart"
ECM = "ECM in relative coordinates"


@claim(
    "P3.fig1",
    "Section 3.1",
    "we can observe that by considering relative reparmeterization (1) the magnitude of the "
    "gradients increase",
    differs="Expectations are integrated: the printed ones still contain x.",
)
def gradients_are_longer(record):
    """Gradients are longer on average, and everywhere."""
    effects = []
    for grid in GRIDS:
        ratio = record.cell(FIELDS, grid, "ratio of mean lengths")
        effects.append(exact(f"ratio of mean lengths, truth {grid}:", ratio, at_least=1))
        share = record.cell(FIELDS, grid, "share of the grid that is longer")
        what = f"share of the grid that is longer, truth {grid}:"
        effects.append(exact(what, share, at_least=0.95, partly_at_least=0.5))
    return effects


@claim(
    "P3.fig1",
    "Section 3.1",
    "which indicates faster convergence with appropriate learning rates",
    differs="Of the figure's two grids; at equal learning rates.",
)
def convergence_is_faster(record):
    """Speed along the slow direction, and the angle to the truth."""
    effects = []
    for grid in GRIDS:
        speed = record.cell(FIELDS, grid, "speed along mu_2 - mu_1, ratio")
        effects.append(exact(f"speed along mu_2 - mu_1, ratio, truth {grid}:", speed, at_least=1))
        cosines = [
            record.cell(FIELDS, grid, f"cosine{name}")
            for name in (", relative", " to the truth, absolute")
        ]
        what = f"cosine to the truth, relative less absolute, truth {grid}:"
        effects.append(difference(what, *cosines, at_least=0))
    return effects


@claim(
    "P3.fig2",
    "Section 4.2",
    "while the distance of the parameters to the true parameterization decrease faster for the "
    "relative reparameterization (Figure 2).",
    differs=CORRECTED,
)
def distance_falls_faster(record):
    """Distance to the truth after some steps, of EM less of ECM."""
    title = "Distance to the truth after steps"
    return [
        difference(
            f"distance after {n} steps, EM less ECM:",
            record.cell(title, "EM", n),
            record.cell(title, ECM, n),
            at_least=0,
        )
        for n in ("3", "5", "8", "12")
    ]


@claim("P3.fig2", "Abstract", "showing faster experimental convergence", differs=CORRECTED)
def ecm_is_faster(record):
    """Look at steps of ECM against those of EM, near the singularity and away from it."""
    effects = [
        level("ratio of steps, ECM to EM:", record.cell(STEPS, ECM, "ratio to EM's"), at_most=1)
    ]
    for truth in record.names("Other truths"):
        ratio = record.cell("Other truths", truth, "ratio of steps, ECM to EM")
        effects.append(level(f"ratio of steps, ECM to EM, truth {truth}:", ratio, at_most=1))
    return effects


@claim(
    "P3.fig2",
    "Abstract",
    "Our method enforces model identifiability during training",
    differs=CORRECTED,
)
def order_is_kept(record):
    """Look at the least gap on the way, without and with a clearance."""
    effects = []
    for name, bound in ((ECM, 0.0), ("ECM, clearance 0.5", 0.5)):
        gaps = record.cell(STEPS, name, "least gap")
        least = min(gaps["values"]) if isinstance(gaps, dict) else gaps
        # Equal means are allowed without a clearance, and are not identifiable.
        wanted = {"at_least": bound - 1e-9} if bound else {"at_least": 1e-9, "partly_at_least": 0}
        effects.append(exact(f"least gap of all samples, {name}:", least, **wanted))
    return effects


@claim(
    "P3.fig2",
    "Section 2",
    "Therefore lambda changes how close the parameters can be to the singularity",
    differs="A clearance of .5; the paper runs none.",
)
def clearance_is_faster(record):
    """Look at steps with a clearance, and what they cost."""
    name = "ECM, clearance 0.5"
    return [
        level("ratio of steps to EM's:", record.cell(STEPS, name, "ratio to EM's"), at_most=1),
        level("nats lost:", record.cell(STEPS, name, "log-likelihood lost, nats"), at_most=0.01),
    ]


@claim(
    "P3.printed",
    "Section 4.2",
    "while the distance of the parameters to the true parameterization decrease faster for the "
    "relative reparameterization (Figure 2).",
    differs=PRINTED,
)
def printed_distance_falls_faster(record):
    """Distance to the truth and steps of the printed algorithm."""
    column = "distance to the truth after 3 steps"
    near = [record.cell(STEPS, name, column) for name in ("EM", PLUS)]
    steps = [record.cell(STEPS, name, "steps") for name in (PLUS, "EM")]
    return [
        difference("distance after 3 steps, EM less printed:", *near, at_least=0),
        difference("steps, printed less EM:", *steps, at_most=0),
    ]


@claim(
    "P3.printed",
    "Section 4.2",
    "Both parameterizations have fast convergence of the log-likelihood",
    differs=f"{PRINTED} Also with truths at -1/2 and 1/2, -1 and 1, -2 and 2.",
)
def printed_likelihood_is_reached(record):
    """Expect that the printed algorithm loses no likelihood."""
    effects = [
        level(
            "nats lost, truth (-5.1, -5):",
            record.cell(STEPS, PLUS, "log-likelihood lost, nats"),
            at_most=0.5,
        )
    ]
    for truth in record.names(AWAY):
        lost = record.cell(AWAY, truth, PLUS)
        effects.append(level(f"nats lost, truth {truth}:", lost, at_most=0.5))
    return effects


@claim(
    "P3.printed",
    "Abstract",
    "Our method enforces model identifiability during training",
    differs=PRINTED,
)
def printed_order_is_kept(record):
    """Expect that the means that the printed algorithm ends at are different, and in order."""
    gaps = record.cell(STEPS, PLUS, "last gap")
    return [
        level("last gap:", gaps, at_least=0.001, partly_at_least=0),
        exact(
            "least last gap of all samples:", min(gaps["values"]), at_least=0.001, partly_at_least=0
        ),
    ]


@claim(
    "P3.general",
    "Appendix C",
    "The E-Step stays the same and in the CM-step in line six, we now consider the update of the "
    "reparameterized model.",
    differs="The paper prints no experiment with more than two components.",
)
def general_algorithm_works(record):
    """Expect that the bound never falls, and the order is kept."""
    title = "Relative ECM of four components"
    effects = []
    for name, bound in (("no clearance", 0.0), ("clearance .5", 0.5)):
        for column, least in (("least change of the bound", -1e-12), ("least gap", bound - 1e-9)):
            worst = min(record.cell(title, name, column)["values"])
            effects.append(exact(f"{column}, {name}:", worst, at_least=least))
    return effects


@claim(
    "P3.information",
    "Section 5.1",
    "We see that the FIM is not invariant under reparameterization. Only its length element is "
    "invariant, whereas the FIM itself is covariant.",
)
def information_is_covariant(record):
    """Expect that the matrices differ by the Jacobian, and lengths do not."""
    title = "Two Gaussians of weights"
    effects = []
    for name in record.names(title):
        for column, wanted in (
            ("distance from J^T I J", {"at_most": 1e-8}),
            ("distance from I", {"at_least": 1e-3}),
            ("length element, relative change", {"at_most": 1e-8}),
        ):
            effects.append(exact(f"{column}, {name}:", record.cell(title, name, column), **wanted))
    return effects


@claim(
    "P3.information",
    "Section 3.1",
    "(2) Mean: if we consider mu_1 = mu_2 the parameter for the mixture [...] and sigma_1 = "
    "sigma_2 are unidentifiable. (3) Standard deviation: similarly if we consider sigma_1 = "
    "sigma_2",
    differs="Equal weights of the two conditions apart and together.",
)
def equal_parameters_are_singular(record):
    """Information is singular where means or deviations are equal."""
    title, column = "Two Gaussians of weights", "least eigenvalue"
    return [
        exact(f"least eigenvalue, {name}:", record.cell(title, name, column), at_most=1e-8)
        for name in record.names(title)[1:]
    ]


@claim(
    "P3.scales",
    "Section 3.1",
    "From there we define the relative reparemeterization as [...] which give an ordering for "
    "mu_2 = mu_1 + Delta_mu => mu_1 < mu_2 and sigma_2 = sigma_1 + Delta_sigma => sigma_1 < "
    "sigma_2",
    differs="The paper then fixes all parameters but one.",
)
def both_orders_fit_all(record):
    """Both orders together lose no likelihood."""
    title, column = "Means 0 and a gap", "ECM, both, lost"
    return [
        level(f"nats lost, {name}:", record.cell(title, name, column), at_most=0.5)
        for name in record.names(title)
    ]


@claim(
    "P3.layers",
    "Section 6",
    "To ensure an absolute ordering we additionally introduce a clearance threshold such that "
    "Delta_i + lambda > 0 which gives us the final reparameterization",
    differs="The paper shows no experiment.",
)
def layers_stay_in_order(record):
    """Gaps of trained layers in order are never below the clearance; free ones are."""
    title, column = "Networks of eight tanh units", "least gap of the first weights"
    ordered, free = (record.cell(title, name, column)["values"] for name in ("in order", "free"))
    return [
        exact("least gap of all networks, in order:", min(ordered), at_least=0.0499),
        exact("least gap of all networks, free:", min(free), at_most=0.05),
    ]
