"""The linear model of coregionalization, inducing inputs, and `Model`: Eq. (4), (5)."""
