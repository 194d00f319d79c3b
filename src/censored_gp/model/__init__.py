"""The model: Eq. (4), (5).

- `lmc`: the linear model of coregionalization of one parameter role, and its features;
- `inducing`: the inducing inputs of each kernel;
- `model`: `Design` (what the model consists of) and `Model` (its hyper-parameters);
- `starting_values`: default kernels and starting values from the data;
- `compilation`: how JAX is used.

Later packages import from these modules. The package itself exports nothing, since users reach the
model through `CensoredGP`.
"""
