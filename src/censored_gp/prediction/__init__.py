"""The posterior predictive, its mixture and scores: Eq. (8), (14)."""
