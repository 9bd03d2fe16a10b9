"""Writes tests/importers/data/gp.safetensors and gpytorch.safetensors: models that GPyTorch trained, and what it predicts.

The first file has one model as its user would save it, the second all of CASES.

Not run by the tests, which need no torch.  In an environment of its own:

    pip install torch gpytorch safetensors
    python tests/support/gpytorch_states.py

The references were written by GPyTorch 1.15.2 and torch 2.13.0.
"""

from pathlib import Path

import gpytorch
import torch
from gpytorch.constraints import Interval, LessThan
from gpytorch.kernels import InducingPointKernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ConstantMean, ZeroMean
from gpytorch.variational import (
    CholeskyVariationalDistribution,
    DeltaVariationalDistribution,
    MeanFieldVariationalDistribution,
    NaturalVariationalDistribution,
    TrilNaturalVariationalDistribution,
    UnwhitenedVariationalStrategy,
    VariationalStrategy,
)
from safetensors.torch import save_file

FOLDER = Path(__file__).resolve().parents[1] / "importers" / "data"
POINTS, INPUTS, ROWS, HELD = 5, 3, 40, 8


class Variational(gpytorch.models.ApproximateGP):
    def __init__(self, points, mean, kernel, strategy, distribution):
        super().__init__(strategy(self, points, distribution(len(points))))
        self.mean_module, self.covar_module = mean, kernel

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Exact(gpytorch.models.ExactGP):
    def __init__(self, x, y, points, mean, kernel, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = mean
        self.covar_module = InducingPointKernel(kernel, inducing_points=points, likelihood=likelihood)

    forward = Variational.forward


def data(dtype, inputs):
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(ROWS + HELD, inputs, generator=generator, dtype=torch.float64) * 4 - 2
    y = 3 + torch.sin(2 * x[:, 0]) + 0.5 * x[:, -1] ** 2
    y += 0.1 * torch.randn(len(x), generator=generator, dtype=torch.float64)
    x, y = x.to(dtype), y.to(dtype)
    return x[:ROWS], y[:ROWS], x[ROWS:]


def trained(make, x, y):
    """The model and its likelihood, after a few steps of Adam."""
    torch.manual_seed(1)
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = make(x, y, likelihood).to(x.dtype)
    likelihood.to(x.dtype)
    model.train(), likelihood.train()
    if isinstance(model, Exact):
        loss = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    else:
        loss = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=len(y))
    natural = any("natural" in name for name, _ in model.named_parameters())
    moving = {id(p): p for part in (model, likelihood) for name, p in part.named_parameters() if "natural" not in name}
    steps = [torch.optim.Adam(moving.values(), lr=0.05)]
    if natural:
        steps.append(gpytorch.optim.NGD(model.variational_parameters(), num_data=len(y), lr=0.1))
    for _ in range(60):
        for step in steps:
            step.zero_grad()
        (-loss(model(x), y)).backward()
        for step in steps:
            step.step()
    return model.eval(), likelihood.eval()


def variational(kernel, mean=ConstantMean, strategy=VariationalStrategy, distribution=CholeskyVariationalDistribution):
    return lambda x, y, likelihood: Variational(x[:POINTS].clone(), mean(), kernel(x.shape[1]), strategy, distribution)


def exact(kernel, mean=ConstantMean):
    return lambda x, y, likelihood: Exact(x, y, x[:POINTS].clone(), mean(), kernel(x.shape[1]), likelihood)


def rbf(dim):
    return ScaleKernel(RBFKernel(ard_num_dims=dim))


def matern(nu):
    return lambda dim: ScaleKernel(MaternKernel(nu=nu, ard_num_dims=dim))


def bounded(dim):
    return ScaleKernel(
        RBFKernel(ard_num_dims=dim, lengthscale_constraint=Interval(0.5, 4.0)), outputscale_constraint=LessThan(5.0)
    )


WIDE, NARROW, UNWHITENED = torch.float64, torch.float32, UnwhitenedVariationalStrategy
CASES = {
    # name: kernel of the importer, precision, model, inputs
    "rbf constant": ("gaussian", WIDE, variational(rbf)),
    "rbf constant narrow": ("gaussian", NARROW, variational(rbf)),
    "rbf one length": ("gaussian", WIDE, variational(lambda dim: RBFKernel())),
    "rbf one input": ("gaussian", WIDE, variational(rbf), 1),
    "rbf bounded": ("gaussian", WIDE, variational(bounded)),
    "matern12": ("matern12", WIDE, variational(matern(0.5))),
    "matern32": ("matern32", WIDE, variational(matern(1.5))),
    "matern52": ("matern52", WIDE, variational(matern(2.5), ZeroMean)),
    "matern12 one input": ("matern12", WIDE, variational(matern(0.5)), 1),
    "unwhitened rbf constant": ("gaussian", WIDE, variational(rbf, strategy=UNWHITENED)),
    "unwhitened rbf zero": ("gaussian", WIDE, variational(rbf, ZeroMean, UNWHITENED)),
    "unwhitened rbf constant narrow": ("gaussian", NARROW, variational(rbf, strategy=UNWHITENED)),
    "unwhitened matern32": ("matern32", WIDE, variational(matern(1.5), strategy=UNWHITENED)),
    "mean field": ("gaussian", WIDE, variational(rbf, distribution=MeanFieldVariationalDistribution)),
    "delta": ("gaussian", WIDE, variational(rbf, distribution=DeltaVariationalDistribution)),
    "natural": ("gaussian", WIDE, variational(rbf, distribution=NaturalVariationalDistribution)),
    "tril natural": ("gaussian", WIDE, variational(rbf, distribution=TrilNaturalVariationalDistribution)),
    "data rbf": ("gaussian", WIDE, exact(rbf)),
    "data rbf zero": ("gaussian", WIDE, exact(rbf, ZeroMean)),
    "data rbf narrow": ("gaussian", NARROW, exact(rbf)),
    "data matern32": ("matern32", WIDE, exact(matern(1.5))),
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    stored = {}
    for name, (kernel, dtype, make, *inputs) in CASES.items():
        x, y, held = data(dtype, *(inputs or [INPUTS]))
        model, likelihood = trained(make, x, y)
        with torch.no_grad():
            predicted = likelihood(model(held))
        state = model.state_dict() | likelihood.state_dict()
        if name.startswith("data"):
            state |= {"train_inputs": x, "train_targets": y}
        state = {key: value.clone() for key, value in state.items()}
        if name == "rbf constant narrow":
            save_file(state, FOLDER / "gp.safetensors")
        for key, value in {"x": held, "mean": predicted.mean, "variance": predicted.variance, **state}.items():
            # older files have no bounds; here they would be most of the file
            if "_constraint" not in key or name == "rbf bounded":
                stored[f"{name}|{kernel}|{key}"] = value.clone()
    save_file(stored, FOLDER / "gpytorch.safetensors")


if __name__ == "__main__":
    main()
