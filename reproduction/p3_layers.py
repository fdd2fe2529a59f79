"""P3: relative coordinates of the units of a layer (section 6)."""

import numpy as np

from .items import item
from .results import Result, Table


@item("P3.layers", "units of a layer in order (section 6)", needs=("torch",))
def layers(setting):
    """Train small networks with the first weights of their units in order, and without."""
    import torch

    from skvmf.neural import relative_units

    table = Table(
        "Networks of eight tanh units on sine waves",
        ["units", "least gap of the first weights", "loss"],
        digits="e",
    )
    x = torch.linspace(-3, 3, 200)[:, None]
    y = torch.sin(2 * x)
    for name in ("free", "in order"):
        found = []
        for seed in range(setting.size(10, 2)):
            torch.manual_seed(seed)
            network = torch.nn.Sequential(
                torch.nn.Linear(1, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)
            )
            if name == "in order":
                relative_units(network[0], network[2], clearance=0.05)
            optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
            for _ in range(setting.size(1000, 20)):
                optimizer.zero_grad()
                loss = ((network(x) - y) ** 2).mean()
                loss.backward()
                optimizer.step()
            first = np.sort(network[0].weight.detach().numpy()[:, 0])
            found.append([np.diff(first).min(), float(loss)])
        table.add(name, *np.transpose(found))
    return Result("Adam at .01, 1,000 steps, clearance .05.", "10 networks, 0 to 9", [table])
